// The Train page: choices start a training, which is followed over HTTP; what was recorded is scrubbed here, in the browser.
const FOLLOW_EVERY_MS = 250, ASK_AGAIN_MS = 1500, KEEP_ALIVE_MS = 30000, FRAME_EVERY_MS = 60;
const KINDS = {
  cross: ["Cross-attention", "Row: token to be written; column: source token.", 30],
  encoder: ["Encoder self-attention", "Source looks at source.", 14],
  decoder: ["Decoder self-attention", "Row: token to be written; column: token read.", 14],
};
const SCHEDULE_NAMES = { linear: "straight to 0", inverse_sqrt: "1/√step (001)" };
const AT_WORK = ["queued", "starting", "running"];
const COOKIE = "transformer-workbench-runs";

class TrainPanel extends LivePanel {
  constructor(root, send) {
    super(root, send);
    this.forget("");
    this.build();
    this.stop = new AbortController();
    document.addEventListener("keydown", (event) => this.key(event), { signal: this.stop.signal });
    document.addEventListener("visibilitychange", () => !document.hidden && this.soon(0), { signal: this.stop.signal });
    this.resized = onNewWidth(this.root, () => this.header && this.draw());
  }

  build() {
    const controls = make("div", "controls", this.root);
    this.sliders = {};
    const add = (parent, name, label, text = String, of = Number) => {
      const slider = rangeInput(parent, label, { min: 0, max: 1, step: 1 }, {
        input: (number) => {
          slider.value.textContent = text(number);
          this.wish({ [name]: of(number) });
        },
        change: () => this.commit(),
      });
      this.sliders[name] = { ...slider, text };
    };
    add(controls, "d_model", "d_model");
    add(controls, "heads", "heads");
    add(controls, "layers", "layers");
    add(controls, "steps", "training steps");
    add(controls, "rate", "learning rate", (power) => (10 ** power).toPrecision(2));
    const more = make("details", "more", controls);
    make("summary", "", more, "more settings");
    const rest = make("div", "rest", more);
    const percent = (share) => `${Math.round(100 * share)} %`;
    add(rest, "batch", "batch");
    add(rest, "warmup", "warmup");
    make("span", "small", rest, "after the warmup");
    this.showSchedule = choiceOf(rest, "Schedule", SCHEDULE_NAMES, (schedule) => this.choose({ schedule }));
    add(rest, "dropout", "dropout", percent);
    add(rest, "smoothing", "label smoothing", percent);
    add(rest, "seed", "seed");
    this.quote = make("p", "quote quiet", controls);
    this.problem = make("p", "problem", controls);
    this.problem.setAttribute("role", "alert");
    this.buttons = {};
    const row = make("div", "buttons", controls);
    const button = (name, text, act) => {
      this.buttons[name] = make("button", name === "start" ? "main" : "", row, text);
      this.buttons[name].type = "button";
      this.buttons[name].addEventListener("click", act);
    };
    button("start", "Start", () => this.start({}));
    button("again", "Start with a new seed", () => this.start({ seed: (this.view.seed + 1) % 10000 }));
    button("pause", "Pause", () => this.tell("pause"));
    button("resume", "Resume", () => this.tell("resume"));
    button("halt", "Stop", () => this.tell("stop"));

    const main = make("div", "main-part", this.root);
    this.standing = make("p", "standing", main);
    this.standing.setAttribute("role", "status");
    this.numbers = {};
    const tiles = make("div", "tiles", main);
    for (const [name, label] of Object.entries({ step: "step", loss: "loss", exact: "exact match", rate: "learning rate", speed: "steps/s", left: "time left" })) {
      const tile = make("div", "tile", tiles);
      make("span", "small", tile, label);
      this.numbers[name] = make("b", "", tile, "–");
      this.numbers[name].dataset.number = name;
    }
    const time = make("div", "time", main);
    this.play = make("button", "", time, "Play");
    this.play.type = "button";
    this.play.addEventListener("click", () => this.toggle());
    this.slider = make("input", "", time);
    Object.assign(this.slider, { type: "range", min: 0, max: 0, step: 1 });
    this.slider.setAttribute("aria-label", "step");
    this.slider.addEventListener("input", () => this.to(Number(this.slider.value)));
    this.slider.addEventListener("change", () => this.note());
    this.count = make("span", "count quiet", time);

    const read = (text) => (this.readout.textContent = text), both = [];
    this.heads = {};
    for (const [kind, [name, note, cell]] of Object.entries(KINDS)) {
      if (kind === "encoder") both.push(make("div", "both", main));
      this.heads[kind] = new Picture(both[0] ?? main, name, note, cell, { read });
    }
    const legend = weightLegend(main);
    this.readout = make("span", "readout quiet", legend);

    const scrub = (x, settled) => {
      this.to(this.frameOf(Math.round(x)));
      if (settled) this.note();
    };
    const side = make("div", "side", this.root), below = make("div", "below", this.root);
    const curves = (parent, title, note) => new Chart(parent, title, 128, note, { scrub });
    this.loss = curves(side, "Loss", "");
    this.exact = curves(side, "Exact match", "");
    this.rate = curves(side, "Learning rate", "");
    this.gradients = curves(below, "Gradient norm of each part", "Before clipping: e1 encoder, d1 decoder, dashed their embeddings, o output and last norms.");
    this.focus = curves(below, "How sharp each head is", "Largest weight of a row, mean over rows: green encoder, violet decoder, blue cross.");
    this.answer = curves(below, "How much lies on the right token", "Share of each head's cross-attention (layer.head) on source tokens equal to the one to be written.");
    this.shifted(make("section", "shifted", this.root));
  }

  shifted(section) {
    make("h3", "", section, "Teacher forcing: one row, shifted by one");
    this.rows = make("div", "rows", section);
    this.shiftNote = make("p", "note", section);
    this.models = make("p", "models", section);
  }

  // What was recorded of a run, nothing yet.
  forget(run) {
    clearTimeout(this.timer);
    this.pauseFrames();
    Object.assign(this, { run, steps: [], frames: [], state: null, at: -1, asked: 0, scrubbed: false, known: {} });
  }

  show(settled) {
    if (settled) this.setControls();
    // While an answer to an older choice is drawn, the run stays: the newest one to be started counts.
    if (settled && this.header.run.id !== this.run) {
      this.forget(this.header.run.id);
      if (!this.header.run.recorded) this.keepCookie();
      this.soon(0);
    }
    this.draw();
  }

  setControls() {
    for (const [name, slider] of Object.entries(this.sliders)) {
      const [min, max, step] = this.header.numbers[name];
      Object.assign(slider.input, { min, max, step });
      slider.show(this.view[name], slider.text(this.view[name]));
    }
    this.showSchedule(this.view.schedule);
  }

  // The browser remembers which runs are its person's, for a reload.
  keepCookie() {
    const found = document.cookie.match(new RegExp(`${COOKIE}=([^;]*)`)), known = found ? found[1].split(".").filter(Boolean) : [];
    const runs = [...known.filter((run) => run !== this.run), this.run].slice(-8);
    document.cookie = `${COOKIE}=${runs.join(".")}; path=/; max-age=21600; samesite=strict`;
  }

  async post(where, question) {
    this.problem.textContent = "";
    try {
      const answer = await fetch(this.header.training + where, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(question) });
      if (answer.ok) return await answer.json();
      this.problem.textContent = await answer.text();
    } catch {
      this.problem.textContent = "The server does not answer. Please try again.";
    }
    return null;
  }

  async start(change) {
    if (AT_WORK.includes(this.state?.name)) await this.post(`/${this.run}`, { do: "stop" });
    const { task, source } = this.header.ask;
    const answer = await this.post("", { task, source, view: { ...this.view, ...change } });
    if (answer) this.choose({ ...change, run: answer.run, at: -1 });
  }

  async tell(what) {
    this.buttons[{ stop: "halt" }[what] ?? what].disabled = true;
    await this.post(`/${this.run}`, { do: what });
    this.soon(0);
  }

  soon(delay) {
    clearTimeout(this.timer);
    if (this.run) this.timer = setTimeout(() => this.follow(), delay);
  }

  async follow() {
    const { run } = this;
    let again = ASK_AGAIN_MS;
    try {
      const answer = await fetch(`${this.header.training}/${run}?steps=${this.steps.length}&frames=${this.frames.length}`);
      if (run !== this.run) return;
      if (answer.ok) {
        this.receive(new Uint8Array(await answer.arrayBuffer()));
        const measuring = ["finished", "stopped"].includes(this.state.name) && this.state.has_model && !this.state.metrics.exact_match_of && this.asked++ < 40;
        again = AT_WORK.includes(this.state.name) || measuring ? FOLLOW_EVERY_MS : this.header.run.recorded ? null : KEEP_ALIVE_MS;
      } else {
        this.problem.textContent = await answer.text();
        again = null;
      }
    } catch {
      this.standing.textContent = "The connection is lost; the training goes on. Trying again …";
    }
    if (again !== null && run === this.run) this.soon(again);
  }

  receive(bytes) {
    const { header, array } = readBlock(bytes), [fromStep, fromFrame] = header.from;
    if (fromStep !== this.steps.length || fromFrame !== this.frames.length) return; // two answers crossed
    for (const [name, kept] of [["steps", this.steps], ["frames", this.frames]]) {
      const { shape: [count, width], values } = array(name);
      for (let i = 0; i < count; i++) kept.push(values.subarray(i * width, (i + 1) * width));
    }
    this.state = header;
    if (this.view.at >= 0 && !this.scrubbed) this.at = this.frameOf(this.view.at);
    this.draw();
  }

  get last() {
    return this.frames.length - 1;
  }

  // The frame on screen: the one that was scrubbed to, else the last there is.
  get index() {
    return this.at < 0 ? this.last : Math.min(this.at, this.last);
  }

  frameOf(step) {
    let index = 0;
    while (index < this.last && this.frames[index + 1][0] <= step) index++;
    return index;
  }

  to(index) {
    this.scrubbed = true;
    this.at = index >= this.last ? -1 : Math.max(0, index);
    this.draw();
  }

  // Into the link, once the slider is let go.
  note() {
    const at = this.at < 0 ? -1 : this.frames[this.at][0];
    if (at !== this.view.at) this.choose({ at });
  }

  toggle() {
    if (this.playing) {
      this.pauseFrames();
      this.note();
    } else {
      if (this.at < 0) this.at = 0;
      this.playing = setInterval(() => {
        this.to(this.index + 1);
        if (this.at < 0) this.toggle();
      }, FRAME_EVERY_MS);
    }
    this.play.textContent = this.playing ? "Pause the film" : "Play";
  }

  pauseFrames() {
    clearInterval(this.playing);
    this.playing = null;
    if (this.play) this.play.textContent = "Play";
  }

  // A named part of a frame: {shape, values}.
  part(frame, name) {
    const { layout } = this.header.run;
    let start = 0;
    for (const [each, shape] of Object.entries(layout)) {
      const size = shape.reduce((a, b) => a * b, 1);
      if (each === name) return { shape, values: frame.subarray(start, start + size) };
      start += size;
    }
    throw new Error(`no ${name} in a frame`);
  }

  draw() {
    const started = this.frames.length > 0;
    this.drawControls();
    this.drawShifted();
    this.step = started ? this.frames[this.index][0] : -1;
    this.drawRate();
    this.drawNumbers(started);
    this.slider.max = Math.max(0, this.last);
    this.slider.value = this.index;
    this.slider.disabled = this.play.disabled = this.last < 1;
    this.slider.setAttribute("aria-valuetext", started ? `step ${this.step}` : "nothing recorded yet");
    this.count.textContent = started ? `after step ${this.step}` : "";
    if (!started) return;
    this.drawHeads();
    this.drawCurves();
  }

  drawControls() {
    const { header } = this, name = this.state?.name;
    const n = header.parameters.toLocaleString("en");
    this.quote.textContent = header.problem ? "" : `${n} parameters, about ${Math.round(header.seconds)} s of one core. ${header.watched}`;
    if (header.problem) this.problem.textContent = header.problem;
    else if (this.saidProblem) this.problem.textContent = "";
    this.saidProblem = Boolean(header.problem);
    const has = !header.run.recorded, atWork = AT_WORK.includes(name);
    this.buttons.start.textContent = has ? "Start anew" : "Start";
    this.buttons.start.disabled = this.buttons.again.disabled = Boolean(header.problem);
    this.buttons.again.hidden = !has;
    for (const [key, wanted] of [["pause", atWork], ["halt", atWork || name === "paused"], ["resume", name === "paused"]]) {
      if (this.buttons[key].hidden === wanted) this.buttons[key].disabled = false;
      this.buttons[key].hidden = !wanted;
    }
  }

  drawNumbers(started) {
    const { state, header } = this;
    this.standing.textContent = this.words();
    if (!state) return;
    const row = this.steps[Math.min(Math.max(this.step, 1), this.steps.length) - 1];
    const put = (name, text) => (this.numbers[name].textContent = text);
    put("step", started ? `${this.step.toLocaleString("en")} of ${header.run.steps.toLocaleString("en")}` : "–");
    put("loss", row ? row[1].toPrecision(3) : "–");
    put("rate", row ? row[2].toExponential(2) : "–");
    put("exact", started ? this.exactText() : "–");
    const recent = this.steps.slice(-40), running = state.name === "running" && recent.length > 1;
    const speed = running ? (recent.length - 1) / (recent.at(-1)[4] - recent[0][4]) : 0;
    put("speed", running ? speed.toFixed(0) : "–");
    put("left", running ? `${Math.ceil((header.run.steps - this.steps.length) / speed)} s` : "–");
  }

  exactText() {
    const { exact_match, exact_match_of } = this.state.metrics;
    if (this.at < 0 && exact_match_of) return `${exact_match.toLocaleString("en")} of ${exact_match_of.toLocaleString("en")}`;
    for (let i = this.index; i >= 0; i--) if (this.frames[i][1] >= 0) return `${this.frames[i][1]} of ${this.header.run.fresh}`;
    return "–";
  }

  words() {
    const { state } = this, { run } = this.header;
    if (run.recorded) return "A training recorded earlier. Drag the slider or a curve; press Start for your own, on your sequence.";
    const names = {
      queued: () => `Waiting: place ${state.place} of ${state.waiting} in the queue.`,
      starting: () => "Starting: a process of its own is being made …",
      running: () => "Training.",
      paused: () => `Paused at step ${state.step}. It can be resumed for some hours.`,
      stopped: () => `Stopped at step ${state.step}.`,
      finished: () => "Finished. Drag the slider, or any curve, through the training.",
      failed: () => "",
    };
    return state ? `${names[state.name]()} ${state.said}` : "…";
  }

  drawHeads() {
    const { example } = this.header.run, frame = this.frames[this.index];
    for (const [kind, picture] of Object.entries(this.heads)) {
      const rows = kind === "encoder" ? example.source : example.written, columns = kind === "decoder" ? example.read : example.source;
      const grid = { name: `${picture.name} after step ${this.step}`, weights: this.part(frame, kind), rows, columns, shown: rows.length,
        hidden: kind === "decoder" ? afterRow : undefined, current: -1 };
      picture.draw(grid, this.step, describeGrid(grid));
    }
  }

  // Series over frames: one line for each number of a part. While the slider moves no frame comes, so they are kept.
  series(name) {
    if (this.known.count !== this.frames.length) this.known = { count: this.frames.length };
    if (!this.known[name]) {
      const x = this.frames.map((frame) => frame[0]), values = this.frames.map((frame) => this.part(frame, name).values);
      this.known[name] = Array.from(values[0], (_, i) => ({ points: values.map((each, at) => [x[at], each[i]]) }));
    }
    return this.known[name];
  }

  // Draws lines over so many steps of training, with the step that is shown.
  over(steps) {
    const x = { name: "step", min: 0, max: steps, bare: true, ticks: [[0, "0"], [steps, `${steps.toLocaleString("en")} steps`]] };
    const now = this.step < 0 ? undefined : { x: this.step };
    return (chart, series, y, said) => chart.show({ x, y: { name: "value", ...y }, series, now, right: 30 }, this.step, `${chart.title.textContent}. ${said}`);
  }

  drawCurves() {
    const { run } = this.header, colours = inks(this.root), style = getComputedStyle(this.root);
    const [green, violet, blue] = ["green", "violet", "blue"].map((name) => style.getPropertyValue(`--st-${name}-color`).trim());
    const over = this.over(run.steps);
    const now = this.steps[Math.min(Math.max(this.step, 1), this.steps.length) - 1];
    const loss = { name: "loss", points: this.steps.map(([step, value]) => [step, value]), colour: blue, wide: 1.2 };
    const least = run.smoothing ? ` Smoothed, it cannot fall below ${run.least_loss.toFixed(3)}.` : "";
    this.loss.note.textContent = `Nats a token of each step's batch, before the step.${least}`;
    over(this.loss, [loss], decadesOf([loss]), now ? `Step ${this.step}: ${now[1].toPrecision(3)} nats.` : "");
    const measured = this.frames.filter((frame) => frame[1] >= 0);
    const exact = { name: "exact match", points: measured.map((frame) => [frame[0], (100 * frame[1]) / run.fresh]), colour: blue };
    this.exact.note.textContent = `Per cent of ${run.fresh} fresh sequences decoded without one wrong token.`;
    over(this.exact, [exact], { min: 0, max: 100 }, `Step ${this.step}: ${this.exactText()}.`);

    const partColour = (name) => (name.includes("source") || name.includes("encoder") ? green : name.includes("output") ? colours.text : violet);
    const partLabel = (name) => (name.includes("embedding") ? name[0] : name.includes("output") ? "o" : name[0] + name.at(-1));
    const gradients = this.series("gradients").map((line, i) => ({ ...line, name: run.parts[i], colour: partColour(run.parts[i]), label: partLabel(run.parts[i]), wide: 1.2, dash: run.parts[i].includes("embedding") ? [3, 2] : [] }));
    const norms = this.part(this.frames[this.index], "gradients").values;
    over(this.gradients, gradients, decadesOf(gradients), run.parts.map((name, i) => `${name} ${norms[i].toPrecision(3)}`).join(", "));

    const ofHeads = (kind, name, colour, labelled) => {
      const { shape: [layers, heads], values } = this.part(this.frames[this.index], name);
      const names = Array.from(values, (_, i) => `${Math.floor(i / heads) + 1}.${(i % heads) + 1}`);
      const lines = this.series(name).map((line, i) => ({ ...line, name: `${kind} ${names[i]}`, colour, label: labelled && layers * heads <= 8 ? names[i] : "", wide: 1.2 }));
      return { lines, said: names.map((each, i) => `${kind} ${each} ${digits(values[i])}`).join(", ") };
    };
    const kinds = [ofHeads("encoder", "focus_encoder", green), ofHeads("decoder", "focus_decoder", violet), ofHeads("cross", "focus_cross", blue)];
    over(this.focus, kinds.flatMap(({ lines }) => lines), { min: 0, max: 1 }, kinds.map(({ said }) => said).join("; "));
    // Where nothing can be copied, as from words to digits, there is nothing to measure.
    this.answer.box.hidden = !run.example.written.some((token) => run.example.source.includes(token));
    if (this.answer.box.hidden) return;
    const { lines, said } = ofHeads("cross", "answer", blue, true);
    over(this.answer, lines, { min: 0, max: 1 }, said);
  }

  drawRate() {
    const colours = inks(this.root), blue = getComputedStyle(this.root).getPropertyValue("--st-blue-color").trim();
    const line = (name, values, more) => ({ name, points: Array.from(values, (value, i) => [i + 1, value]), ...more });
    const peakOf = (values) => values.reduce((best, each, i) => (each > values[best] ? i : best), 0);
    const used = this.array("run_rate").values, document001 = this.array("document_rate").values;
    const next = this.array("next_rate").values, differs = next.length !== used.length || next.some((each, i) => each !== used[i]);
    const lines = [line("document 001", document001, { colour: `rgb(${colours.grey.join()})`, dash: [5, 3] }), line("used", used, { colour: blue, wide: 2 })];
    if (differs) lines.push(line("chosen for the next start", next, { colour: colours.accent, dash: [2, 2] }));
    const said = (name, values) => (values.length ? `${name}: peak ${values[peakOf(values)].toExponential(2)} at step ${peakOf(values) + 1}` : "");
    const steps = Math.max(used.length, differs ? next.length : 0);
    this.rate.note.textContent = `Solid, ${said("used", used)}. Dashed, ${said("document 001 (warmup 400)", document001)}.${differs ? ` Dotted, ${said("next start", next)}.` : ""}`;
    const high = 1.05 * Math.max(...used, ...document001, ...(differs ? next : []));
    this.over(steps)(this.rate, lines, { min: 0, max: high }, this.rate.note.textContent);
  }

  drawShifted() {
    const { run, answer } = this.header, { read, written, source } = run.example;
    const kept = this.at < 0 ? -1 : Math.max(...run.kept.filter((step) => step <= this.frames[this.index][0]));
    const key = JSON.stringify([read, written, run.smoothing, this.state?.has_model, this.run, kept]);
    if (key === this.shownRows) return;
    this.shownRows = key;
    this.rows.replaceChildren();
    const line = (name, tokens, kind) => {
      make("span", `name ${kind}`, this.rows, name);
      tokens.forEach((token) => make("span", `token ${kind}`, this.rows, token));
      for (let i = tokens.length; i < Math.max(read.length, source.length); i++) make("span", "", this.rows);
    };
    this.rows.style.setProperty("--columns", Math.max(read.length, source.length));
    line("source", source, "src");
    line("decoder reads", read, "tgt");
    line("is to write", written, "tgt");
    const smooth = run.smoothing ? ` Label smoothing ${run.smoothing}: the right token is wanted with ${run.wanted[0].toFixed(3)}, every other but <pad> with ${run.wanted[1].toFixed(4)}.` : "";
    this.shiftNote.textContent = `Each column is one prediction: whatever the model would have said, it reads ${answer} up to there, so all columns are trained in one pass; the causal mask keeps a column from reading its own answer further right.${smooth}`;
    this.models.replaceChildren();
    if (!this.state?.has_model) return;
    const link = (text, href) => Object.assign(make("a", "", this.models, text), { href });
    const { task } = this.header.ask, title = encodeURIComponent(this.header.title), model = kept < 0 ? this.run : `${this.run}@${kept}`;
    make("span", "", this.models, kept < 0 ? "This model: " : `The model as it was after step ${kept}: `);
    const base = this.header.training.replace(/training$/, "");
    link("open it on Decode", `${base}?task=${title}&model-${task}=${model}`);
    link("on Attention", `${base}attention?task=${title}&model-${task}=${model}`);
    Object.assign(link("download it (.safetensors)", `${this.header.training}/${this.run}/model.safetensors${kept < 0 ? "" : `?step=${kept}`}`), { download: "" });
  }

  key(event) {
    if (!this.header || keysAreTaken(event) || this.last < 1) return;
    const onButton = event.composedPath()[0].closest?.("button, a, summary");
    const act = {
      ArrowRight: () => this.to(this.index + 1), ArrowLeft: () => this.to(this.index - 1),
      Home: () => this.to(0), End: () => this.to(this.last), " ": onButton ? null : () => this.toggle(),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
    if (event.key !== " ") {
      clearTimeout(this.noting);
      this.noting = setTimeout(() => this.note(), 400);
    }
  }

  destroy() {
    clearTimeout(this.timer);
    clearTimeout(this.noting);
    this.run = "";
    this.pauseFrames();
    this.stop.abort();
    this.resized.disconnect();
  }
}

export default mounted("train", TrainPanel);
