// Steps through a decode that Python has computed: every step is here already, so nothing waits for the server.
const ICONS = {
  restart: "M3 3h2v10H3zM13 3v10L6 8z", back: "M12 3v10L4 8z", play: "M4 2.5v11L13 8z", pause: "M4 3h3v10H4zM9 3h3v10H9z",
  step: "M3 3v10l7-5zM11 3h2v10h-2z", end: "M2 3v10l5-5zM7 3v10l5-5zM12 3h2v10h-2z",
};
const PLAY_EVERY_MS = 700;

function iconButton(parent, icon, name, title, action) {
  const button = make("button", "", parent);
  button.type = "button";
  button.setAttribute("aria-label", name);
  button.title = title;
  button.innerHTML = `<svg viewBox="0 0 16 16" aria-hidden="true"><path d="${ICONS[icon]}"/></svg>`;
  make("span", "", button, name).setAttribute("aria-hidden", "true");
  button.addEventListener("click", action);
  return button;
}

function chip(parent, text, kind) {
  return make("span", `token ${kind}`, parent, text);
}

class Player {
  constructor(root, send) {
    this.root = root;
    this.send = send;
    this.step = 0;
    this.timer = null;
    this.build();
    this.stop = new AbortController();
    document.addEventListener("keydown", (event) => this.key(event), { signal: this.stop.signal });
    this.resized = onNewWidth(this.cross.box, () => this.data && this.draw());
  }

  build() {
    const root = this.root;
    const bar = make("div", "bar", root);
    bar.setAttribute("role", "group");
    bar.setAttribute("aria-label", "Steps");
    this.restart = iconButton(bar, "restart", "Restart", "Before the first token (Home)", () => this.go(0));
    this.back = iconButton(bar, "back", "Back", "One token back (left arrow)", () => this.go(this.step - 1));
    this.forward = iconButton(bar, "step", "Step", "One token on (right arrow)", () => this.go(this.step + 1));
    this.forward.classList.add("main");
    this.play = iconButton(bar, "play", "Play", "Play or pause (space)", () => this.toggle());
    this.end = iconButton(bar, "end", "Run to end", "All tokens (End)", () => this.go(this.total));
    this.slider = make("input", "", bar);
    Object.assign(this.slider, { type: "range", min: 0, step: 1 });
    this.slider.setAttribute("aria-label", "step");
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
    hearAtOnce(this.slider);
    this.count = make("span", "count quiet", bar);

    const rows = make("div", "rows", root);
    make("span", "name src", rows, "Source");
    this.source = make("div", "tokens", rows);
    make("span", "name tgt", rows, "Output");
    this.output = make("div", "tokens", rows);
    this.output.dataset.role = "output";
    this.textName = make("span", "name tgt", rows, "Text");
    this.text = make("p", "text", rows);

    const next = make("div", "next", root);
    this.nextTitle = make("h3", "", next);
    this.list = make("ol", "", next);
    this.nextNote = make("p", "quiet", next);
    this.greedy = make("button", "back-to-greedy", next, "Back to the model's own choice");
    this.greedy.type = "button";
    this.greedy.addEventListener("click", () => this.branch([]));

    const read = (text) => (this.readout.textContent = text);
    const linesBox = make("div", "lines", root);
    this.alignment = new Alignment(linesBox, "Alignment: cross-attention as lines", { read });
    this.lineChoices = make("div", "line-choices", linesBox);
    const crossBox = make("div", "cross", root);
    this.cross = new Picture(crossBox, "Cross-attention", "row: token being written; column: source token", 22, { read });
    const selfBox = make("div", "self", root);
    this.encoder = new Picture(selfBox, "Encoder self-attention", "source looks at source", 13, { read });
    this.own = new Picture(selfBox, "Decoder self-attention", "row: token being written; column: token read", 13, { read });

    const foot = make("div", "foot", root);
    const legend = make("div", "legend", foot);
    make("span", "", legend, "weight 0");
    make("span", "scale", legend);
    make("span", "", legend, "1");
    const masked = make("div", "legend", foot);
    make("span", "masked", masked);
    make("span", "", masked, "masked: not written yet");
    this.readout = make("span", "quiet", foot);
    this.kept = make("p", "kept quiet", root);
    this.spoken = make("div", "hidden", root);
    this.spoken.setAttribute("aria-live", "polite");
  }

  show(bytes) {
    const before = this.data;
    const { header, array } = readBlock(bytes);
    const sameSource = before && before.source.join(" ") === header.source.join(" ");
    this.data = header;
    this.array = array;
    this.total = header.written.length;
    this.probabilities = array("probabilities").values;
    this.taken = array("taken").values;
    this.logProbability = array("log_probability").values;
    this.layChoices();
    this.takeGrids();
    this.slider.max = this.total;
    this.source.replaceChildren();
    header.source.forEach((token) => chip(this.source, token, "src"));
    if (!header.source.length) make("span", "quiet", this.source, "nothing: no source token to look at");
    this.output.replaceChildren();
    this.chips = header.written.map((token, t) => chip(this.output, token, t < header.forced ? "tgt chosen" : "tgt"));
    this.open = chip(this.output, " ", "open");
    this.verdict = make("span", "verdict quiet", this.output);
    if (!sameSource) this.pause();
    // A first picture opens where the link says, or where this sequence was left for another page.
    const { opens } = header, here = header.source.join(" ");
    const left = window.transformerWorkbenchLeft?.source === here ? window.transformerWorkbenchLeft.step : opens;
    this.go(sameSource ? this.step : before ? opens : header.step !== opens ? header.step : left);
  }

  // What is shown of the weights, by tokens or by words.
  takeGrids() {
    const words = this.inWords && this.data.words, of = (name) => this.array(words ? `word-${name}` : name);
    const { source, written, read } = words || this.data;
    this.grids = new Map([
      [this.cross, { name: "Cross-attention", weights: of("cross"), rows: written, columns: source }],
      [this.encoder, { name: "Encoder self-attention", weights: of("encoder"), rows: source, columns: source }],
      // A word's later pieces read its earlier ones, so its row goes up to itself.
      [this.own, { name: "Decoder self-attention", weights: of("self"), rows: written, columns: read, growing: !words,
        hidden: words ? (layer, head, row, column) => column > row + 1 : afterRow }],
    ]);
    this.lines = of("lines");
  }

  // Which layer's and head's lines are drawn, and whether pieces are joined: buttons as many as there are.
  layChoices() {
    const [layers, heads] = this.array("cross").shape;
    if (this.laid === `${layers} ${heads} ${Boolean(this.data.words)}`) return;
    this.laid = `${layers} ${heads} ${Boolean(this.data.words)}`;
    this.lineChoices.replaceChildren();
    const names = (n) => ({ [n]: "mean", ...Object.fromEntries(Array.from({ length: n }, (_, i) => [i, i + 1])) });
    const linked = new URL(window.location).searchParams, [layer, head] = (linked.get("lines") ?? "").split(".").map((text) => Number(text) - 1);
    const within = (i, n) => (Number.isInteger(i) && i >= 0 && i < n ? i : n);
    this.line = { layer: within(layer, layers), head: within(head, heads) };
    const choice = (name, n) => {
      const group = make("div", "line-choice", this.lineChoices);
      make("span", "quiet", group, name);
      return choiceOf(group, `${name} of the lines`, names(n), (i) => {
        this.line[name] = Number(i);
        this.noteStep();
        this.draw(false);
      });
    };
    this.showLine = { layer: choice("layer", layers), head: choice("head", heads) };
    this.inWords = Boolean(this.data.words) && linked.get("words") === "true";
    this.wordBox = checkBox(this.lineChoices, "whole words", (inWords) => {
      this.inWords = inWords;
      this.noteStep();
      this.takeGrids();
      this.draw();
    });
    this.wordBox.checked = this.inWords;
    this.wordBox.parentElement.hidden = !this.data.words;
  }

  go(step) {
    this.step = Math.max(0, Math.min(this.total, step));
    clearTimeout(this.noting);
    this.noting = setTimeout(() => this.noteStep(), 300);
    if (this.step === this.total) this.pause();
    this.draw(false);
  }

  // The link holds the step, without a word to the server: it reads the link when the page is opened.
  noteStep() {
    window.transformerWorkbenchLeft = { source: this.data.source.join(" "), step: this.step };
    const url = new URL(window.location);
    const note = (name, value, usual) => (value === usual ? url.searchParams.delete(name) : url.searchParams.set(name, value));
    note("step", this.step, this.data.opens);
    const [layers, heads] = this.array("cross").shape, { layer, head } = this.line;
    note("lines", `${layer < layers ? layer + 1 : 0}.${head < heads ? head + 1 : 0}`, "0.0");
    note("words", String(this.inWords), "false");
    if (url.href !== window.location.href) window.history.replaceState(window.history.state, "", url);
  }

  toggle() {
    if (this.timer !== null) return this.pause();
    if (this.step === this.total) this.go(0);
    this.timer = setInterval(() => this.go(this.step + 1), PLAY_EVERY_MS);
    this.draw();
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.drawBar();
  }

  // Take these tokens first and let the model go on from there; none: all its own. It is answered without a run of
  // the page, which then keeps the branch in its link.
  async branch(tokens) {
    this.pause();
    const { source, ask: { at, ...question } } = this.data, branch = (this.asked = { source, tokens });
    this.step = Math.max(1, tokens.length);
    const answer = await fetch(`${at}?q=${encodeURIComponent(JSON.stringify({ ...question, wish: { tokens } }))}`).catch(() => null);
    const block = answer?.ok ? new Uint8Array(await answer.arrayBuffer()) : null;
    if (branch !== this.asked) return; // another one has been asked for meanwhile
    if (block && this.data.source.join(" ") === source.join(" ")) this.show(block);
    this.send("branch", branch);
  }

  // A step changes one row or some, and nothing in the encoder's picture; a new width, source or theme changes all.
  draw(everything = true) {
    this.drawBar();
    this.drawOutput();
    this.drawCandidates();
    // Of words, those that are complete.
    const done = this.inWords ? this.data.words.complete.filter((end) => end <= this.step).length : this.step;
    this.drawLines(done);
    for (const [picture, grid] of this.grids) {
      const growing = picture !== this.encoder;
      const shown = growing ? done : grid.rows.length, current = growing ? done - 1 : -1;
      if (everything || picture.grid !== grid) {
        picture.draw(Object.assign(grid, { shown, current }), this.step, describeGrid(grid));
      } else if (growing) picture.follow(shown, current, this.step);
      else picture.canvas.dataset.v = this.step;
    }
  }

  drawLines(shown) {
    const { shape: [, heads], values } = this.lines, { layer, head } = this.line, { rows, columns } = this.grids.get(this.cross);
    this.showLine.layer(layer);
    this.showLine.head(head);
    const size = rows.length * columns.length, start = (layer * heads + head) * size;
    const name = this.alignment.figure.title.textContent;
    this.alignment.draw({ name, rows, columns, values: values.subarray(start, start + size), shown, current: shown - 1 }, this.step);
  }

  drawBar() {
    const playing = this.timer !== null, atStart = this.step === 0, atEnd = this.step === this.total;
    this.restart.disabled = this.back.disabled = atStart;
    this.forward.disabled = this.end.disabled = atEnd;
    const name = playing ? "Pause" : "Play";
    this.play.setAttribute("aria-label", name);
    this.play.querySelector("path").setAttribute("d", playing ? ICONS.pause : ICONS.play);
    this.play.querySelector("span").textContent = name;
    this.slider.value = this.step;
    this.slider.setAttribute("aria-valuetext", `${this.step} of ${this.total} tokens written`);
    this.count.textContent = `step ${this.step} of ${this.total}`;
  }

  drawOutput() {
    const { expected, right, stopped, answer, noAnswer, texts, cached, memory } = this.data;
    this.textName.hidden = this.text.hidden = !texts.length;
    this.text.textContent = (this.step && texts[this.step - 1]) || " ";
    const [cross, own] = cached[Math.max(0, this.step - 1)].map((n) => n.toLocaleString("en"));
    this.kept.textContent = `The encoder ran once: its memory, (${memory.join(", ")}), is kept. Kept with it in the KV cache ${this.step ? "now" : "after the first token"}: `
      + `cross-attention's keys and values of the memory, ${cross} numbers, each layer's own and computed once; self-attention's, ${own} numbers, ${cached[0][1].toLocaleString("en")} more with each token.`;
    this.output.querySelector(".now")?.classList.remove("now");
    this.chips[this.step - 1]?.classList.add("now");
    this.output.replaceChildren(...this.chips.slice(0, this.step), this.step < this.total ? this.open : this.verdict);
    if (this.step === this.total) {
      const end = stopped === "eos" ? "" : `Stopped by the limit of ${this.total} tokens. `;
      const verdict = right ? `✓ ${answer}` : expected ? `✗ ${answer} is ${expected.join(" ") || "nothing"}` : `? ${noAnswer}`;
      this.verdict.textContent = end + verdict;
    }
  }

  drawCandidates() {
    const { candidates, tokens, forced, written } = this.data;
    const t = Math.max(0, this.step - 1);
    this.nextTitle.textContent = this.step ? `Candidates for token ${this.step}` : "Candidates for token 1, not yet taken";
    const width = candidates[t].length;
    while (this.list.children.length < width) this.addCandidate();
    candidates[t].forEach(({ id, label: text }, i) => {
      const p = this.probabilities[t * width + i], button = this.list.children[i].firstChild;
      button.classList.toggle("taken", this.step > 0 && id === tokens[t]);
      button.dataset.id = id;
      button.title = `Take ${text} here and let the model go on`;
      const [name, track, value] = button.children;
      name.textContent = text;
      track.firstChild.style.transform = `scaleX(${p})`;
      value.textContent = digits(p);
    });
    const rest = this.step ? `Output so far: probability ${Math.exp(this.logProbability[t]).toPrecision(3)}` : "";
    this.nextNote.textContent = rest;
    this.greedy.hidden = !forced;
    this.spoken.textContent = this.step
      ? `Step ${this.step} of ${this.total}: ${written[t]}, probability ${digits(this.taken[t])}` : "Before the first token";
  }

  addCandidate() {
    const button = make("button", "", make("li", "", this.list));
    button.type = "button";
    make("span", "label", button);
    make("div", "fill", make("span", "track", button));
    make("span", "value", button);
    button.addEventListener("click", () => {
      const t = Math.max(0, this.step - 1);
      this.branch([...this.data.tokens.slice(0, t), Number(button.dataset.id)]);
    });
  }

  // Arrows step and space plays wherever the focus is, except where these keys mean something already.
  key(event) {
    if (!this.data || keysAreTaken(event)) return;
    const onButton = event.composedPath()[0].closest?.("button, a, summary");
    const act = {
      ArrowRight: () => this.go(this.step + 1), ArrowLeft: () => this.go(this.step - 1),
      Home: () => this.go(0), End: () => this.go(this.total), " ": onButton ? null : () => this.toggle(),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  destroy() {
    this.pause();
    clearTimeout(this.noting);
    this.stop.abort();
    this.resized.disconnect();
  }
}

export default function ({ parentElement, data, setStateValue }) {
  let root = parentElement.querySelector(".player");
  if (!root) {
    root = make("div", "tw player", parentElement);
    root.player = new Player(root, setStateValue);
  }
  root.player.send = setStateValue;
  root.player.show(data);
  return () => root.player.destroy();
}
