// The Attention page: sliders choose a model, Python answers with all heads, and one query of one head in slow motion.
const KIND_NAMES = { encoder: "Encoder self", decoder: "Decoder self", cross: "Cross" };
const MEAN_NAMES = { head: "this head", layer: "mean of the layer", all: "mean of all" };
const REST_EVERY_MS = 200;
const STAGES = ["q", "k", "q·k", "÷ √d_k", "mask", "softmax", "v", "z"];

class AttentionPanel extends LivePanel {
  constructor(root, send) {
    super(root, send);
    this.stage = STAGES.length - 1;
    this.last = "d_model";
    this.restDrawn = 0;
    this.build();
    this.stop = new AbortController();
    document.addEventListener("keydown", (event) => this.key(event), { signal: this.stop.signal });
    this.resized = onNewWidth(this.overview.box, () => this.header && this.draw());
  }

  build() {
    const controls = make("div", "controls", this.root);
    this.sliders = {
      d_model: this.slider(controls, "d_model", 8, 128, 8),
      heads: this.slider(controls, "heads", 1, 8, 1),
      d_k: this.slider(controls, "d_k", 1, 128, 1),
    };
    this.linked = checkBox(controls, "d_k = d_model / heads", (linked) => this.choose({ d_k: linked ? null : this.view.d_k_shown }));
    this.layer = rangeInput(controls, "layer", { min: 1, max: 2, step: 1 }, {
      input: (layer) => {
        this.last = "layer";
        this.wish({ layer: layer - 1 });
      },
      change: () => this.commit(),
    });
    this.status = make("p", "status", controls);
    this.snap = make("p", "snap", controls);
    this.snap.setAttribute("role", "status");

    const kinds = make("div", "kinds", this.root);
    this.showKind = choiceOf(kinds, "Attention", KIND_NAMES, (kind) => this.choose({ kind, query: 0 }));
    this.words = checkBox(kinds, "whole words", (words) => this.choose({ words }));
    this.readout = make("span", "readout quiet", kinds);
    const read = (text) => (this.readout.textContent = text);

    const all = make("div", "all", this.root);
    const start = (row) => this.header.words?.starts[row] ?? row; // a word is taken apart at its first piece
    const pick = ({ layer, head, row }) => this.choose({ layer, head, query: start(row) });
    this.overview = new Picture(all, "Every layer and head", "", 22, { read, pick });
    weightLegend(all);

    const one = make("div", "one", this.root);
    this.large = new Picture(one, "", "Click a row to take its query apart.", 34, { read, pick: ({ row }) => this.choose({ query: start(row) }) });
    this.changed = new Picture(one, "", "", 34, { read });
    this.changed.box.classList.add("changed");
    this.whatIf(one);
    this.alignment = new Alignment(one, "The same as lines", { read });
    this.showMean = choiceOf(one, "Lines", MEAN_NAMES, (mean) => this.choose({ mean }));

    const slow = make("section", "slow", this.root);
    const head = make("div", "slow-head", slow);
    this.slowTitle = make("h3", "", head);
    saveTableMenu(head, "Slow motion", () => this.slowLines());
    this.showStage = choiceOf(head, "Stages", STAGES, (stage) => this.toStage(Number(stage)));
    this.tell = make("p", "tell", slow);
    this.tell.setAttribute("aria-live", "polite");
    this.table = make("div", "table", slow);

    const sums = make("div", "sums", this.root);
    const numbers = make("div", "numbers", sums);
    const numbersHead = make("div", "slow-head", numbers);
    make("h3", "", numbersHead, "Rows of each head: mean entropy in nats, mean largest weight");
    saveTableMenu(numbersHead, "Rows of each head", () => this.sumLines());
    this.numberTable = make("div", "", numbers);
    this.alike = new Picture(sums, "Which heads are alike", "1: the same weight on the same keys; 0: no key in common.", 22, { read });
  }

  slider(parent, name, min, max, step) {
    const slider = rangeInput(parent, name, { min, max, step }, {
      input: (number) => {
        this.last = name;
        slider.value.textContent = number;
        // What another slider gave way to is forgotten as long as this one is held: passing 3 heads must not
        // leave d_model where 3 heads had pushed it.
        this.held ??= { d_model: this.view.d_model, heads: this.view.heads };
        if (name in this.held) this.held[name] = number;
        const change = { ...this.held, [name]: number, moved: name };
        if (name === "d_k") this.linked.checked = false;
        else if (this.linked.checked) change.d_k = null;
        this.wish(change);
      },
      change: () => {
        this.held = null;
        this.commit();
      },
    });
    return slider;
  }

  whatIf(parent) {
    const row = make("div", "what-if", parent);
    make("span", "quiet", row, "What if");
    this.scaled = checkBox(row, "no ÷ √d_k", (without) => this.choose({ scaled: !without }));
    this.masked = checkBox(row, "no mask", (without) => this.choose({ masked: !without }));
    this.temperature = rangeInput(row, "temperature", { min: -2, max: 2, step: 0.1 }, {
      input: (power) => {
        const temperature = Number((2 ** power).toPrecision(3));
        this.last = "temperature";
        this.temperature.value.textContent = temperature.toFixed(2);
        this.wish({ temperature });
      },
      change: () => this.commit(),
    });
  }

  // What gave way to a choice is told until the next one, though the view asked for from then on is a possible one.
  wish(change) {
    this.gaveWay = "";
    super.wish(change);
  }

  choose(change) {
    super.choose({ ...change, moved: change.d_k === null ? "d_model" : this.view.moved });
  }

  show(settled) {
    this.gaveWay = this.header.snapped || this.gaveWay;
    if (settled) this.setControls();
    // What the eye is on is drawn at once; the rest a few times a second while a slider moves, and when it rests.
    this.drawOverview();
    // The rest waits for the next frame to be on the screen.
    cancelAnimationFrame(this.frame);
    clearTimeout(this.after);
    if ((settled && !this.moving) || performance.now() - this.restDrawn > REST_EVERY_MS) {
      this.frame = requestAnimationFrame(() => (this.after = setTimeout(() => this.drawRest())));
    }
  }

  setControls() {
    const { d_model, heads, d_k_shown, d_k, scaled, masked, temperature, words } = this.view;
    Object.entries(this.header.most).forEach(([name, most]) => (this.sliders[name].input.max = most));
    for (const [name, value] of Object.entries({ d_model, heads, d_k: d_k_shown })) {
      this.sliders[name].show(value);
    }
    this.layer.input.max = this.array("weights").shape[0];
    this.layer.show(this.view.layer + 1);
    this.linked.checked = d_k === null;
    this.scaled.checked = !scaled;
    this.masked.checked = !masked;
    this.temperature.show(Math.log2(temperature), temperature.toFixed(2));
    this.words.checked = words;
    this.words.parentElement.hidden = !this.header.pieces;
  }

  draw() {
    this.drawOverview();
    this.drawRest();
  }

  drawOverview() {
    const { view, words, trained, causal } = this.header, { rows, columns } = words ?? this.header;
    this.shownValue = { d_model: view.d_model, heads: view.heads, d_k: view.d_k_shown, layer: view.layer + 1, temperature: view.temperature }[this.last];
    // A word's later pieces see its earlier ones, so its row goes up to itself.
    this.hidden = words ? (layer, head, row, column) => column > row + 1 : afterRow;
    this.base = { rows, columns, shown: rows.length, hidden: causal ? this.hidden : undefined, current: -1, untrained: !trained };
    this.current = words ? words.starts.filter((start) => start <= view.query).length - 1 : view.query;
    const weights = this.array(words ? "word-weights" : "weights"), picked = { layer: view.layer, head: view.head };
    const overview = { ...this.base, name: `${KIND_NAMES[view.kind]}-attention`, weights, picked };
    this.overview.draw(overview, this.shownValue, describeGrid({ ...overview, current: this.current }));
  }

  drawRest() {
    this.restDrawn = performance.now();
    const { view, words, trained, status, causal } = this.header, { rows, columns } = words ?? this.header;
    this.root.classList.toggle("untrained", !trained);
    this.status.textContent = status;
    this.snap.textContent = this.gaveWay || "";
    this.showKind(view.kind);
    this.masked.disabled = !causal;

    const { base, shownValue: v } = this, weights = this.array(words ? "word-weights" : "weights").values, [, heads] = this.array("weights").shape;
    this.overview.note.textContent = this.header.shapes.weights;

    const changes = !view.scaled || !view.masked || view.temperature !== 1;
    this.changed.box.hidden = !changes;
    this.changed.box.parentElement.classList.toggle("compared", changes);
    const size = rows.length * columns.length, start = (view.layer * heads + view.head) * size;
    const own = { shape: [1, 1, rows.length, columns.length], values: weights.subarray(start, start + size) };
    const name = `layer ${view.layer + 1}, head ${view.head + 1}`;
    this.large.title.textContent = `${KIND_NAMES[view.kind]}-attention, ${name}`;
    const large = { ...base, name: this.large.title.textContent, weights: own, current: this.current, bare: true };
    this.large.draw(large, v, describeGrid(large));

    if (changes) {
      const what = [view.scaled ? "" : "no ÷ √d_k", view.masked ? "" : "no mask", view.temperature === 1 ? "" : `temperature ${view.temperature.toFixed(2)}`];
      this.changed.title.textContent = `What if: ${what.filter(Boolean).join(", ")}`;
      this.changed.note.textContent = "This head's formula changed, with the true q and k; nothing after it is.";
      const grid = { ...large, name: this.changed.title.textContent, weights: this.array(words ? "word-changed" : "changed"), hidden: causal && view.masked ? this.hidden : undefined };
      this.changed.draw(grid, v, describeGrid(grid));
    }
    this.showMean(view.mean);
    const lines = { name: `${KIND_NAMES[view.kind]}-attention, ${view.mean === "head" ? name : MEAN_NAMES[view.mean]}`, rows, columns };
    this.alignment.draw({ ...lines, values: this.array("lines").values, shown: rows.length, current: this.current }, v);
    this.drawSums(heads, v);
    this.drawSlow();
  }

  // The picked head's, by tokens whatever the pictures show.
  headWeights() {
    const { shape: [, heads, rows, columns], values } = this.array("weights"), start = (this.header.view.layer * heads + this.header.view.head) * rows * columns;
    return values.subarray(start, start + rows * columns);
  }

  drawSums(heads, v) {
    const entropy = this.array("entropy"), maximum = this.array("maximum").values, [layers] = entropy.shape;
    this.numberTable.replaceChildren();
    const table = make("table", "", this.numberTable);
    const top = make("tr", "", table);
    make("th", "", top, "");
    for (let head = 0; head < heads; head++) make("th", "", top, `head ${head + 1}`);
    for (let layer = 0; layer < layers; layer++) {
      const row = make("tr", "", table);
      make("th", "", row, `layer ${layer + 1}`);
      for (let head = 0; head < heads; head++) {
        const i = layer * heads + head;
        const cell = make("td", "", row, `${entropy.values[i].toFixed(3)}  ${maximum[i].toFixed(3)}`);
        cell.classList.toggle("picked", layer === this.header.view.layer && head === this.header.view.head);
      }
    }
    make("p", "note quiet", this.numberTable, `0 is one key; ln ${this.header.columns.length} = ${Math.log(Math.max(1, this.header.columns.length)).toFixed(3)} is all keys alike.`);
    const names = Array.from({ length: layers * heads }, (_, i) => `${Math.floor(i / heads) + 1}.${(i % heads) + 1}`);
    const alike = { name: "Which heads are alike", weights: this.array("alike"), rows: names, columns: names, shown: names.length, current: -1, bare: true, untrained: !this.header.trained };
    this.alike.draw(alike, v, `${alike.name}: ${names.length} by ${names.length}, named layer.head.`);
  }

  sumLines() {
    const { shape: [layers, heads], values } = this.array("entropy"), maximum = this.array("maximum").values;
    const lines = [["layer", "head", "mean entropy (nats)", "mean largest weight"]];
    for (let i = 0; i < layers * heads; i++) lines.push([Math.floor(i / heads) + 1, (i % heads) + 1, values[i], maximum[i]]);
    return lines;
  }

  toStage(stage) {
    this.stage = Math.max(0, Math.min(STAGES.length - 1, stage));
    this.drawSlow();
  }

  // One query as a table: a row per key, a column per stage; columns beyond the stage stay empty.
  drawSlow() {
    const { view, rows, columns, causal, shapes } = this.header, { query } = view, keys = columns.length;
    this.slowTitle.textContent = `Slow motion: ${rows.length ? `query ${rows[query]} (row ${query + 1})` : "no query"}`;
    this.showStage(this.stage);
    this.tell.textContent = shapes.stages[this.stage];
    this.layTable(keys);
    if (!keys || !rows.length) return;
    const width = view.d_k_shown, weights = this.headWeights();
    const vector = (name, i) => this.array(name).values.subarray(i * width, (i + 1) * width);
    const scalar = (name, i) => this.array(name).values[query * keys + i];
    const put = (cell, text, stage) => {
      cell.textContent = this.stage >= stage ? text : "";
      cell.classList.toggle("later", this.stage < stage);
    };
    const strips = [[this.cells.q, vector("q", query), "q", 0], [this.cells.z, vector("z", query), "z", 7]];
    this.cells.keys.forEach((cells, i) => {
      const masked = causal && i > query, weight = weights[query * keys + i];
      cells.name.textContent = columns[i];
      strips.push([cells.k, vector("k", i), `k of ${columns[i]}`, 1], [cells.v, vector("v", i), `v of ${columns[i]}`, 6]);
      put(cells.dot, scalar("dots", i).toFixed(3), 2);
      put(cells.score, scalar("scores", i).toFixed(3), 3);
      put(cells.masked, masked ? "−∞" : scalar("scores", i).toFixed(3), 4);
      cells.masked.classList.toggle("hatched", masked && this.stage >= 4);
      put(cells.weight, digits(weight), 5);
      cells.weight.style.setProperty("--share", this.stage >= 5 ? `${100 * weight}%` : "0%");
    });
    put(this.cells.sum, `Σ ${weights.subarray(query * keys, (query + 1) * keys).reduce((a, b) => a + b, 0).toFixed(3)}`, 5);
    put(this.cells.zName, "z", 7);
    const colours = inks(this.root), most = this.largest(), widths = strips.map(([box]) => box.clientWidth);
    strips.forEach(([box, numbers, name, stage], i) => drawStrip(box.firstChild, this.stage >= stage ? numbers : [], widths[i], most, colours, name));
  }

  // What the slow motion computes for its query, all stages: a line per key.
  slowLines() {
    const { view, rows, columns, causal } = this.header, width = view.d_k_shown, { query } = view;
    const parts = (name) => Array.from({ length: width }, (_, i) => `${name}_${i + 1}`);
    const of = (name, i) => Array.from(this.array(name).values.subarray(i * width, (i + 1) * width));
    const at = (name, i) => this.array(name).values[query * columns.length + i];
    const weights = this.headWeights();
    return [
      ["query", "key", "column", "q·k", "score", "masked", "weight", ...parts("q"), ...parts("k"), ...parts("v"), ...parts("z")],
      ...columns.map((key, i) => [rows[query], key, i + 1, at("dots", i), at("scores", i), causal && i > query ? "masked" : "",
        weights[query * columns.length + i], ...of("q", query), ...of("k", i), ...of("v", i), ...of("z", query)]),
    ];
  }

  // The table's cells, made anew only when the number of keys changes.
  layTable(keys) {
    if (this.cells?.keys.length === keys) return;
    this.table.replaceChildren();
    this.cells = { keys: [] };
    if (!keys) return make("p", "quiet", this.table, "No key to attend to: every row of weights is empty and z is 0.");
    const cell = (className, text = "") => make("div", className, this.table, text);
    const strip = () => {
      const box = cell("strip");
      make("canvas", "", box).setAttribute("role", "img");
      return box;
    };
    for (const text of ["key", "k", "q·k", "÷ √d_k", "mask", "weight", "v"]) cell("th", text);
    cell("name", "q");
    this.cells.q = strip();
    for (let i = 0; i < 5; i++) cell("");
    for (let i = 0; i < keys; i++) {
      this.cells.keys.push({ name: cell("name"), k: strip(), dot: cell("number"), score: cell("number"), masked: cell("number"), weight: cell("number bar"), v: strip() });
    }
    this.cells.zName = cell("name");
    for (let i = 0; i < 4; i++) cell("");
    this.cells.sum = cell("number sum");
    this.cells.z = strip();
  }

  // One scale for all strips of the head, so that q, k, v and z compare.
  largest() {
    return Math.max(1e-9, ...["q", "k", "v", "z"].map((name) => this.array(name).values.reduce((a, b) => Math.max(a, Math.abs(b)), 0)));
  }

  key(event) {
    if (!this.header || keysAreTaken(event)) return;
    const { query } = this.view, last = this.header.rows.length - 1;
    const act = {
      ArrowRight: () => this.toStage(this.stage + 1), ArrowLeft: () => this.toStage(this.stage - 1),
      ArrowDown: () => this.choose({ query: Math.min(last, query + 1) }), ArrowUp: () => this.choose({ query: Math.max(0, query - 1) }),
      Home: () => this.toStage(0), End: () => this.toStage(STAGES.length - 1),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  destroy() {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.after);
    this.stop.abort();
    this.resized.disconnect();
  }
}

function drawStrip(canvas, numbers, width, most, colours, name) {
  const height = 16, pen = sharp(canvas, width, height), cell = width / numbers.length, line = cell >= 5 ? 1 : 0;
  paintCells(pen, numbers.length ? 1 : 0, numbers.length, (_, i) => signed(colours, numbers[i] / most), 0, 0, width, height);
  if (line) for (let i = 1; i < numbers.length; i++) pen.clearRect(i * cell - 1, 0, 1, height);
  const shown = Array.from(numbers.slice(0, 8), (number) => number.toFixed(3)).join(", ");
  const text = numbers.length ? `${name} = (${shown}${numbers.length > 8 ? ", …" : ""})` : `${name}: not computed yet`;
  canvas.setAttribute("aria-label", text);
  canvas.title = text;
}

export default mounted("attention", AttentionPanel);
