// The Masks page: a batch whose lengths are dragged, its masks, and what the model makes of them.
const KIND_NAMES = { encoder: "Encoder self", decoder: "Decoder self", cross: "Cross" };
const REST_EVERY_MS = 200, WHOLE_AFTER_MS = 400;

class MasksPanel extends LivePanel {
  constructor(root, send) {
    super(root, send);
    this.last = 0;
    this.restDrawn = 0;
    this.buildMasks();
    this.buildAttention();
    this.buildLeak();
    this.buildEmpty();
    this.buildModels();
    this.stop = new AbortController();
    document.addEventListener("keydown", (event) => this.key(event), { signal: this.stop.signal });
    this.resized = onNewWidth(this.pictures.encoder.box, () => this.header && this.draw());
  }

  buildMasks() {
    const top = make("section", "top", this.root), controls = make("div", "controls", top);
    this.lengths = count(3).map((name, b) => rangeInput(controls, `length ${name}`, { min: 0, max: 1, step: 1 }, {
      input: (length) => {
        this.last = b;
        this.lengths[b].value.textContent = length;
        clearTimeout(this.later);
        this.wish({ lengths: this.view.lengths.map((old, i) => (i === b ? length : old)), whole: false });
      },
      change: () => this.commit(),
    }));
    this.causal = checkBox(controls, "causal mask", (causal) => this.choose({ causal }));
    const buttons = make("div", "buttons", controls);
    this.undo = this.button(buttons, "", () => this.choose({ flips: [] }));
    this.button(buttons, "Other companions", () => this.choose({ draw: this.view.draw + 1 }));
    make("span", "quiet", controls, "Masks drawn");
    this.showSpread = choiceOf(controls, "Masks drawn", { false: "as stored", true: "over heads and queries" }, (spread) => this.choose({ spread: spread === "true" }));
    this.maskRead = make("p", "readout quiet", controls);

    const all = make("div", "shelf", top);
    const hint = "Sentence 1 is yours. Click a cell of a mask that the model uses, in either Source padding or in Both, to turn it; arrow keys and Enter do it too.";
    const read = (text) => (this.maskRead.textContent = text ?? hint);
    read(null);
    const turn = (picture) => (cell) => {
      const name = picture().nameOf(cell), { flips } = this.view;
      this.choose({ flips: flips.includes(name) ? flips.filter((other) => other !== name) : [...flips, name] });
    };
    const group = (name) => {
      const box = make("div", `group ${name}`, all);
      make("h2", "", box, `${KIND_NAMES[name]}-attention`);
      return make("div", "row", box);
    };
    const picture = (parent, title, name, letter) => new MaskPicture(parent, title, letter, {
      read, pick: "edc".includes(letter) ? turn(() => this.pictures[name]) : undefined,
    });
    const encoder = group("encoder"), cross = group("cross"), decoder = group("decoder");
    this.pictures = { encoder: picture(encoder, "Source padding", "encoder", "e"), cross: picture(cross, "Source padding again", "cross", "c") };
    this.pictures.padding = picture(decoder, "Target padding", "padding", "p");
    make("span", "sign", decoder, "&");
    this.pictures.causal = picture(decoder, "Causal", "causal", "m");
    make("span", "sign", decoder, "=");
    this.pictures.decoder = picture(decoder, "Both", "decoder", "d");
  }

  buildAttention() {
    const part = this.part("attend", "Scores before, weights after");
    this.status = make("p", "tell quiet", part);
    const choices = make("div", "choices", part);
    this.showSentence = choiceOf(choices, "Sentence", { 0: "Sentence 1", 1: "Sentence 2", 2: "Sentence 3" }, (b) => this.choose({ sentence: Number(b) }));
    this.showKind = choiceOf(choices, "Attention", KIND_NAMES, (attend) => this.choose({ attend }));
    this.readout = make("span", "readout quiet", choices);
    const read = (text) => (this.readout.textContent = text);
    const pick = ({ layer, head, row }) => this.choose({ layer, head, row });
    weightLegend(choices);
    const pair = make("div", "pair", part);
    this.scores = new Picture(pair, "Scores q·k / √d_k", "", 22, { read, pick });
    make("span", "sign", pair, "→");
    this.weights = new Picture(pair, "Weights", "What is masked gets 0, and the rest of the row still sums to 1 (Eq. 1.2).", 22, { read, pick });
    const out = make("div", "out", part);
    make("h3", "", out, "What it writes next");
    this.moved = make("p", "note", out);
    this.next = make("table", "next", out);
  }

  buildLeak() {
    const part = this.part("leak", "Leak detector: change one target token, see whose logits move");
    const row = make("div", "choices", part);
    this.place = rangeInput(row, "position", { min: 1, max: 2, step: 1 }, {
      input: (place) => {
        this.view = { ...this.view, place: place - 1 };
        this.drawLeak();
      },
      change: () => this.choose({}),
    });
    const choice = make("label", "token", row, "becomes ");
    this.token = make("select", "", choice);
    this.token.setAttribute("aria-label", "new token");
    this.token.addEventListener("change", () => this.choose({ token: Number(this.token.value) }));
    const columns = make("div", "columns", part);
    this.leaks = Object.entries({ causal: "With the causal mask", open: "The same model without it", yours: "With your cells" }).map(([name, title]) => {
      const box = make("div", "column", columns), bars = new Bars(box, title);
      const matrix = new LeakMatrix(box, "All changes at once", "", 14, { pick: (cell) => this.choose({ place: cell.row }) });
      return { name, box, bars, matrix };
    });
  }

  buildEmpty() {
    const part = this.part("empty", "A row in which nothing may be attended");
    this.emptyTold = make("p", "tell", part);
    this.empty = make("table", "", make("div", "scroll", part));
    make("h3", "", part, "Why padding masks leave the query axis alone");
    this.queryAxis = make("p", "tell", part);
  }

  buildModels() {
    const part = this.part("models", "Trained with the mask, trained without");
    this.models = make("table", "", make("div", "scroll", part));
    this.modelsTold = make("p", "tell", part);
    const pair = make("div", "pair", part), hooks = {};
    this.honest = new Picture(pair, "With: decoder self-attention", "", 18, hooks);
    this.cheat = new Picture(pair, "Without: decoder self-attention", "", 18, hooks);
  }

  part(name, title) {
    const part = make("section", name, this.root);
    make("h2", "", part, title);
    return part;
  }

  button(parent, text, act) {
    const button = make("button", "", parent, text);
    button.type = "button";
    button.addEventListener("click", act);
    return button;
  }

  show(settled) {
    if (settled) this.setControls();
    // What breaks is computed when the slider rests: a drag waits for the masks, the weights and the output only.
    clearTimeout(this.later);
    if (settled && !this.header.whole) this.later = setTimeout(() => this.latch.ask(this.view), WHOLE_AFTER_MS);
    // What the eye is on is drawn at once; the rest a few times a second while a slider moves, and when it rests.
    this.drawMasks();
    cancelAnimationFrame(this.frame);
    if ((settled && !this.moving) || performance.now() - this.restDrawn > REST_EVERY_MS) this.frame = requestAnimationFrame(() => this.drawRest());
  }

  setControls() {
    const { lengths, full, vocabulary, read, scaled, status } = this.header, { view } = this;
    this.status.textContent = status;
    this.scores.title.textContent = scaled ? "Scores q·k / √d_k" : "Scores q·k, which this model does not divide";
    lengths.forEach((length, b) => {
      this.lengths[b].input.max = full[b];
      this.lengths[b].show(length, `${length} of ${full[b]}`);
    });
    this.causal.checked = view.causal;
    this.undo.textContent = `Undo ${view.flips.length} cell${view.flips.length === 1 ? "" : "s"}`;
    this.undo.hidden = !view.flips.length;
    this.showSpread(view.spread);
    this.showKind(view.attend);
    this.showSentence(view.sentence);
    this.place.input.max = read[view.sentence];
    if (this.token.length !== vocabulary.length) this.token.replaceChildren(...vocabulary.map((name, id) => new Option(name, id)));
    this.token.value = view.token_shown;
  }

  draw() {
    this.drawMasks();
    this.drawRest();
  }

  drawMasks() {
    const { header } = this, { view, lengths, sources, targets, heads } = header, v = lengths[this.last];
    this.shownValue = v;
    const flips = new Set(view.flips);
    this.root.classList.toggle("spread", view.spread);
    const S = sources[0].length, T = targets[0].length, B = sources.length;
    const used = { encoder: [S, S], cross: [T, S], padding: [T, T], causal: [T, T], decoder: [T, T] };
    const letters = { encoder: "(B, 1, 1, S)", cross: "(B, 1, 1, S)", padding: "(B, 1, 1, T)", causal: "(1, 1, T, T)", decoder: "(B, 1, T, T)" };
    const rules = { causal: view.causal ? "key ≤ query (Eq. 3.1); " : "taken away; ", decoder: "Eq. 3.3; " };
    for (const [name, picture] of Object.entries(this.pictures)) {
      const mask = this.array(name), spread = view.spread ? [B, heads, ...used[name]] : null;
      const tokens = { encoder: sources, cross: sources, padding: targets, decoder: targets }[name] ?? null;
      say(picture.shape, `${letters[name]} = (${mask.shape.join(", ")})`);
      const along = [[`${B} sentences`, mask.shape[0]], [`${heads} heads`, 1], [`${used[name][0]} queries`, mask.shape[2]]];
      const times = along.filter(([text, size]) => size === 1 && !text.startsWith("1 ")).map(([text]) => text).join(" and ");
      say(picture.note, `${rules[name] ?? ""}each cell serves ${times}`);
      picture.show({ mask, spread, tokens, flips, sentence: view.sentence }, v);
    }
  }

  drawRest() {
    this.restDrawn = performance.now();
    this.drawAttention();
    this.drawNext();
    if (!this.header.whole) return;
    this.place.show(Math.min(this.view.place, this.header.read[this.header.view.sentence] - 1) + 1);
    this.drawLeak();
    this.drawEmpty();
    this.drawModels();
  }

  drawAttention() {
    const { view, sources, targets } = this.header, v = this.shownValue;
    const rows = view.attend === "encoder" ? sources[view.sentence] : targets[view.sentence];
    const columns = view.attend === "decoder" ? targets[view.sentence] : sources[view.sentence];
    const scores = this.array("scores"), weights = this.array("weights"), mask = this.array("mask");
    const base = { rows, columns, shown: rows.length, current: view.row, picked: undefined };
    const name = `${KIND_NAMES[view.attend]}-attention of sentence ${view.sentence + 1}`;
    const most = scores.values.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
    const before = { ...base, name: `Scores, ${name}`, weights: scores, most, current: -1 };
    this.scores.draw(before, v, `${before.name}: from ${(-most).toFixed(3)} to ${most.toFixed(3)}, before the mask.`);
    this.scores.note.textContent = `Every pair has a score, hidden or not. Blue is above 0, orange below; the deepest is ±${most.toFixed(3)}.`;
    const after = { ...base, name: `Weights, ${name}`, weights, current: -1, picked: { layer: view.layer, head: view.head },
      hidden: (l, h, row, column) => !mask.values[row * columns.length + column], over: (pen, tile) => markEmptyRows(mask, pen, tile) };
    this.weights.draw(after, v, describeGrid({ ...after, current: view.row }));
  }

  drawNext() {
    const { view, targets, written, read, vocabulary, edited } = this.header, n = read[view.sentence];
    const ids = this.array("next"), p = this.array("probability"), [, top] = ids.shape, moved = this.array("moved").values;
    this.moved.textContent = edited
      ? `Against the usual masks logits move by up to ${small(moved.subarray(0, n).reduce((a, b) => Math.max(a, b), 0))}.`
      : "The masks are the usual ones. Turn a cell, or take the causal mask away, and watch this column.";
    this.next.replaceChildren();
    const head = make("tr", "", this.next);
    for (const text of ["", "reads", "should", "writes"]) make("th", "", head, text);
    for (let t = 0; t < n; t++) {
      const row = make("tr", "", this.next);
      make("th", "", row, String(t + 1));
      make("td", "token", row, targets[view.sentence][t]);
      make("td", "token", row, written[t]);
      const cell = make("div", "guesses", make("td", "", row));
      for (let k = 0; k < top; k++) {
        const word = vocabulary[ids.values[t * top + k]], share = p.values[t * top + k];
        if (k && share < 0.0005) continue;
        const guess = make("span", k ? "guess" : word === written[t] ? "guess first" : "guess first wrong", cell);
        guess.style.setProperty("--share", `${100 * share}%`);
        make("span", "", guess, word);
        make("span", "value", guess, digits(share));
      }
    }
  }

  drawLeak() {
    if (!this.header.whole) return;
    const { view, targets, read } = this.header, n = read[view.sentence], labels = targets[view.sentence].slice(0, n);
    const place = Math.min(this.view.place, n - 1), shown = this.leaks.filter(({ name }) => this.header.arrays[`leak_${name}`]);
    const most = Math.max(1e-9, ...shown.map(({ name }) => this.array(`leak_${name}`).values.reduce((a, b) => Math.max(a, b), 0)));
    this.place.show(place + 1, `${place + 1}: ${labels[place]}`);
    for (const { name, box, bars, matrix } of this.leaks) {
      box.hidden = !shown.some((one) => one.name === name);
      if (box.hidden) continue;
      const { values } = this.array(`leak_${name}`);
      bars.show(values.subarray(place * n, (place + 1) * n), labels, place, most);
      matrix.show(bars, values, labels, place, most);
    }
  }

  drawEmpty() {
    const { view, sources, targets, softmaxes, query_axis: axis } = this.header;
    const rows = view.attend === "encoder" ? sources[view.sentence] : targets[view.sentence];
    const keys = view.attend === "decoder" ? targets[view.sentence] : sources[view.sentence];
    this.emptyTold.textContent = `Row ${view.row + 1} (${rows[view.row]}) of layer ${view.layer + 1}, head ${view.head + 1} with every key hidden, masked in four ways, computed just now. z = weights · v; ∂ is the largest gradient of |z|²/2. Drag a length to 0, and the model itself has such rows.`;
    layEmpty(this.empty, softmaxes, this.array("empty_weights"), this.array("empty_numbers"), keys);
    this.queryAxis.textContent = axis.hidden === 0
      ? "Shorten a sentence, so that there is padding, and it is measured here."
      : `Hide padding there too, and ${axis.nan_1} of the encoder's ${axis.rows} rows have no key left. With −∞ they are NaN after one attention${axis.nan_2 === null ? ", the only one of this encoder" : `, and ${axis.nan_2} rows after two, for 0 · NaN is NaN`}. With zeros nothing breaks, and nothing is gained: the logits at real tokens move by ${axis.change === 0 ? "exactly 0" : `at most ${small(axis.change)}`}, since nobody reads a padded row.`;
  }

  drawModels() {
    const { pair } = this.header, percent = (name) => Math.max(...this.array(`${name}_ahead`).values).toFixed(3);
    layModels(this.models, pair);
    const shipped = this.header.own ? "Both are models that came with the app, d_model 64 with 4 heads: yours has no twin that was trained the other way. " : "";
    this.modelsTold.textContent = `${shipped}Where the answer lies among the inputs nothing is left to learn: without the mask the head that looks ahead most puts ${percent("open")} of its weight on the next token, the answer itself, as the treatise argues in 3.1. When the model decodes, that token is not there.`;
    for (const [name, picture] of [["causal", this.honest], ["open", this.cheat]]) {
      const read = pair[name].read.map((token) => (token === "<pad>" ? "·" : token)), grid = { name: picture.title.textContent, weights: this.array(`${name}_weights`), rows: read, columns: read, shown: read.length, current: -1, hidden: name === "causal" ? afterRow : undefined };
      picture.draw(grid, this.shownValue, describeGrid(grid));
      picture.note.textContent = `Largest mean weight on the next token: ${percent(name)}`;
    }
  }

  key(event) {
    if (!this.header || keysAreTaken(event)) return;
    const { sentence } = this.view, act = { ArrowLeft: Math.max(0, sentence - 1), ArrowRight: Math.min(2, sentence + 1) }[event.key];
    if (act === undefined) return;
    event.preventDefault();
    this.choose({ sentence: act });
  }

  destroy() {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.later);
    this.stop.abort();
    this.resized.disconnect();
  }
}

export default mounted("masks", MasksPanel);
