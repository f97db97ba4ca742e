"""What a live panel asks while a slider moves: a question by HTTP, a block of numbers back, no script run between.

A run of the page costs Streamlit several times the model's own few milliseconds, and the browser draws the whole
page anew. So the script runs when a control is let go; what is dragged is answered here, by the same function.
"""

import importlib
import json
from typing import Any

import streamlit as st
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

# What answers: module:function, called with task, source and wish, gives the block. One that can show a person's own
# model puts its id into the block's "ask", and is given it back as a fourth argument.
PANELS = {
    "decode": "app.decode_view:panel_block",
    "attention": "app.attention_view:panel_block",
    "masks": "app.masks_block:panel_block",
    "positions": "app.positions_view:panel_data",
    "order": "app.positions_sections:order_data",
    "schemes": "app.positions_sections:schemes_data",
    "sizes": "app.positions_sections:sizes_data",
    "saturation": "app.saturation_view:drawn_data",
    "own": "app.saturation_own:own_data",
    "runs": "app.saturation_view:runs_data",
    "train": "app.train_view:panel_block",
    "gradients": "app.gradients_view:panel_data",
}
OWN_MODELS = ("decode", "attention", "masks", "order", "schemes", "sizes", "own")


def address(panel: str) -> str:
    """Where a panel's questions go, under the server's prefix if it has one."""
    return "/" + "/".join(filter(None, (st.get_option("server.baseUrlPath").strip("/"), "live", panel)))


def asked_about(panel: str, task_name: str, src: list[int]) -> dict[str, Any]:
    """What stands in a block's header, for the panel to ask about the same source again."""
    return {"at": address(panel), "task": task_name, "source": src}


def answer(request: Request) -> Response:
    """The block for ?q={"task": name, "source": ids, "wish": view}, or 400 with what is wrong with the question.

    Runs in a thread of the server's pool; the models are shared and only read.
    """
    name = request.path_params["panel"]
    if name not in PANELS:
        return PlainTextResponse(f"there is no panel {name!r}; there are {', '.join(PANELS)}", 404)
    # Here, not above: torch takes seconds to import, and the server need not wait for it.
    from app.models import task_of
    from app.source import within_reach

    module, _, function = PANELS[name].partition(":")
    block_of = getattr(importlib.import_module(module), function)
    try:
        question = dict(json.loads(request.query_params.get("q", "")))
        model = [str(question["model"])] if question.get("model") and name in OWN_MODELS else []
        task = task_of(question["task"], *model)
        src, wish = [int(i) for i in question["source"]], dict(question["wish"])
        task.tokenizer.labels(within_reach(task, src))
    except (ValueError, KeyError, TypeError) as error:
        return PlainTextResponse(f"the question cannot be read: {error!r}", 400)
    return Response(
        block_of(task, src, wish, *model), media_type="application/octet-stream", headers={"Cache-Control": "no-store"}
    )


def routes() -> list[Route]:
    """For the server, once its options are known."""
    return [Route(address("{panel}"), answer)]
