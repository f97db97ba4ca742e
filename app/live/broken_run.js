// A training of both twins on the server, watched: started, asked for new lines, stopped.
// It is found again after a reload or another page: its name stands in the tab's own storage.
class LiveRun {
  constructor(panel) {
    this.panel = panel;
    this.run = null; // {name, part, seed, curves, measured, running, said}
    const row = panel.runRow;
    this.button = make("button", "main-button", row);
    this.button.type = "button";
    this.button.addEventListener("click", () => (this.run?.running ? this.halt() : this.start()));
    const label = make("label", "seed", row, "seed ");
    this.seed = make("input", "", label);
    Object.assign(this.seed, { type: "number", min: 0, max: 9999, step: 1, value: 3 });
    this.seed.setAttribute("aria-label", "seed");
    this.status = make("span", "status quiet", row);
    this.status.setAttribute("role", "status");
  }

  of(part) {
    return this.run?.part === part && (this.run.curves.intact.length || this.run.running) ? this.run : null;
  }

  async start() {
    const part = this.panel.part.name, seed = Math.min(9999, Math.max(0, Math.round(Number(this.seed.value)) || 0));
    this.seed.value = seed;
    this.begin({ part, seed });
    if (this.panel.view.guess === null) this.panel.choose({ guess: "shown" });
    const answer = await this.post("start", { part, seed });
    if (!answer?.ok) return this.end(answer ? await answer.text() : "The server does not answer.");
    this.run.name = (await answer.json()).run;
    if (this.run.wantsStop) return this.halt();
    sessionStorage.setItem("breaking", JSON.stringify({ name: this.run.name, part, seed }));
    this.poll();
  }

  begin({ part, seed, name }) {
    this.run = { part, seed, name, curves: { intact: [], broken: [] }, lines: 0, measured: null, running: true, said: "starting …" };
    this.panel.draw();
  }

  resume() {
    const kept = JSON.parse(sessionStorage.getItem("breaking") ?? "null");
    if (!kept) return;
    this.begin(kept);
    this.poll();
  }

  async poll() {
    const { run } = this;
    const answer = await fetch(`${this.panel.header.at}/${run.name}?after=${run.lines}`).catch(() => null);
    if (run !== this.run || !run.running) return;
    if (answer?.status === 404) return this.end("That training is over.");
    if (answer?.ok) {
      const { lines, running } = await answer.json();
      run.lines += lines.length;
      lines.forEach((line) => this.take(JSON.parse(line)));
      if (!running) return this.end(run.measured ? "" : "It ended before it was finished.");
      if (lines.length) this.panel.draw();
    }
    this.timer = setTimeout(() => this.poll(), ASK_EVERY_MS);
  }

  take(event) {
    const { run } = this;
    if (event.measured) run.measured = event.measured;
    else run.curves[event.twin].push([event.step, event.loss]);
    const last = run.curves.broken.at(-1) ?? run.curves.intact.at(-1);
    const steps = this.panel.part.runs[0].intact.curve.at(-1)[0];
    run.said = last ? (last[0] < steps ? `step ${last[0]} of ${steps}` : "decoding fresh sequences …") : run.said;
  }

  async halt() {
    const { run } = this;
    if (!run.name) return (run.wantsStop = true); // not started yet: stopped as soon as it has a name
    run.running = false;
    clearTimeout(this.timer);
    await this.post(`${run.name}/stop`, {});
    this.end(run.measured ? "" : "Stopped.");
  }

  end(said) {
    this.run.running = false;
    this.run.said = said;
    sessionStorage.removeItem("breaking");
    this.panel.draw();
  }

  post(where, what) {
    return fetch(`${this.panel.header.at}/${where}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(what) }).catch(() => null);
  }

  draw(part) {
    const { run } = this, here = run?.part === part.name;
    this.button.textContent = run?.running ? "Stop" : "Train it before my eyes";
    const other = run?.running && !here ? `${this.panel.header.parts.find((one) => one.name === run.part)?.title}: ` : "";
    const result = here && run.measured ? `seed ${run.seed}: ${run.measured.broken.exact.toLocaleString("en")} against ${run.measured.intact.exact.toLocaleString("en")} right` : "";
    const cost = `both twins, about ${Math.max(1, Math.round(part.seconds))} processor-seconds`;
    this.status.textContent = run?.running ? other + run.said : here && (run.said || result) ? run.said || result : cost;
    this.seed.disabled = Boolean(run?.running);
  }

  leave() {
    clearTimeout(this.timer);
    this.run = null;
  }
}

export default mounted("breakit", BrokenPanel);
