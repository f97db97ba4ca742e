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

# The modules whose panel_data(task, src, wish) answers: the block, and the view that it shows.
PANELS = {"attention": "app.attention_view", "gradients": "app.gradients_view"}


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
    from app.source import within_reach
    from transformer import TASKS

    panel = importlib.import_module(PANELS[name])
    try:
        question = json.loads(request.query_params.get("q", ""))
        task = TASKS[question["task"]]()
        src, wish = [int(i) for i in question["source"]], dict(question["wish"])
        task.tokenizer.labels(within_reach(task, src))
    except (ValueError, KeyError, TypeError) as error:
        return PlainTextResponse(f"the question cannot be read: {error!r}", 400)
    block, _ = panel.panel_data(task, src, wish)
    return Response(block, media_type="application/octet-stream", headers={"Cache-Control": "no-store"})


def routes() -> list[Route]:
    """For the server, once its options are known."""
    return [Route(address("{panel}"), answer)]
