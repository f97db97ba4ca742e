// Trainings with and without the division, measured beforehand: a table of all, and the losses of one width.
class RunsPanel extends LivePanel {
  constructor(root, send) {
    super(root, send);
    const controls = make("div", "controls", root);
    make("span", "quiet", controls, "initial weights");
    this.showInit = choiceOf(controls, "initial weights", { xavier: "Xavier", default: "torch's own" }, (init) => this.choose({ init }));
    this.table = make("table", "", make("section", "numbers", root));
    const curve = make("section", "curve", root);
    this.figure = new Chart(curve, "", 260);
    sideLegend(curve, "not divided");
    this.tell = make("p", "tell", root);
    this.status = make("p", "note quiet", root);
    this.command = make("code", "command", root);
    this.resized = onNewWidth(root, () => this.header && this.draw());
  }

  show() {
    this.draw();
  }

  draw() {
    const { head_width: width, init } = this.header.view, { runs, exact_of: of, averaged_steps: every, status } = this.header;
    this.showInit(init);
    const some = (d_k, scaled) => runs.filter((run) => run.d_k === d_k && run.init === init && run.scaled === scaled);
    this.lay([...new Set(runs.map((run) => run.d_k))], some, of);
    const losses = [true, false].flatMap((scaled) => some(width, scaled).map((run) => ({ scaled, loss: run.loss, seed: run.seed })));
    const all = losses.flatMap(({ loss }) => loss), last = losses[0].loss.length * every;
    const middle = (i) => i * every + (every + 1) / 2; // of the steps that a point averages
    this.figure.title.textContent = `Training loss at d_k ${width}, nats a token`;
    const rows = () => [["d_k", "init", "divided", "seed", "step", "loss"], ...[true, false].flatMap((scaled) => some(width, scaled).flatMap((run) => run.loss.map((value, i) => [width, init, scaled ? "yes" : "no", run.seed, middle(i), value])))];
    const series = losses.map(({ scaled, loss, seed }) => ({ name: `${scaled ? "divided" : "not divided"}, seed ${seed}`, colour: scaled ? "blue" : "orange", points: loss.map((value, i) => [middle(i), value]) }));
    const y = { name: "loss", min: Math.min(...all) * 0.7, max: Math.max(...all) * 1.2, log: true };
    this.figure.show({ x: { name: "step", min: 0, max: last }, y, series, rows }, width,
      `${this.figure.title.textContent}: ${losses.map(({ scaled, loss }) => `${scaled ? "divided" : "not divided"} ends at ${four(loss.at(-1))}`).join("; ")}.`);
    const [plain] = some(width, false), mean = (scaled, when, number) => {
      const all = some(width, scaled).map((run) => run[when][number]);
      return four(all.reduce((a, b) => a + b, 0) / all.length);
    };
    this.tell.textContent = `Before the first step q·k in the cross-attention has variance ${mean(true, "before", "dots_variance")}, and the Jacobian of a row a trace of ${mean(true, "before", "trace")} with the division, ${mean(false, "before", "trace")} without; `
      + `after the last step ${mean(true, "after", "trace")} and ${mean(false, "after", "trace")}. The initial weights matter: Xavier's give q and k variance 1 here, torch's own a third of it, so q·k starts at d_k or at a ninth of that.`;
    this.status.textContent = status;
    this.command.textContent = plain.command;
  }

  lay(widths, some, of) {
    this.table.replaceChildren();
    const top = make("tr", "", this.table);
    for (const text of ["d_k", "÷ √d_k", "not divided"]) make("th", "", top, text);
    for (const d_k of widths) {
      const row = make("tr", "", this.table), button = make("button", "", make("th", "", row), String(d_k));
      button.type = "button";
      button.setAttribute("aria-label", `d_k ${d_k}`);
      button.setAttribute("aria-pressed", d_k === this.header.view.head_width);
      button.addEventListener("click", () => this.choose({ head_width: d_k }));
      for (const scaled of [true, false]) make("td", scaled ? "with" : "without", row, some(d_k, scaled).map((run) => run.exact.toLocaleString("en")).join("  "));
    }
    make("caption", "quiet", this.table, `Right of ${of.toLocaleString("en")} fresh sequences, ${some(widths[0], true).length} seeds each`);
  }

  destroy() {
    this.resized.disconnect();
  }
}

export default mounted("runs", RunsPanel);
