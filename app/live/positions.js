// The Positions page's first picture. Python sends one width's encodings, rotations and residuals as blocks; p, k and
// the pair are then scrubbed here, each a row of a block, and only d_model asks Python again while it moves.
const CONTROLS = [["d_model", "d_model", "d_model"], ["p", "p", "position p"], ["k", "k", "offset k"], ["pair", "i", "pair i"]];

class PositionsPanel extends LivePanel {
  constructor(root, send) {
    super(root, send);
    this.last = "k";
    this.held = {};
    this.build();
    this.resized = onNewWidth(root, () => this.header && this.draw());
  }

  build() {
    const controls = make("div", "controls", this.root);
    this.sliders = {};
    for (const [name, title, words] of CONTROLS) {
      this.sliders[name] = this.slider(controls, name, title);
      this.sliders[name].row.firstChild.textContent = words;
    }
    this.checks = make("dl", "checks", controls);
    this.token = make("p", "quiet", controls);
    this.readout = make("p", "readout quiet", controls);
    const read = (text) => (this.readout.textContent = text);

    const heat = make("div", "heat", this.root);
    this.heat = new Sheet(heat, "The encoding", { row: 5, most: 14 }, { read, pick: ({ row, column }) => this.pick({ p: row, pair: Math.floor(column / 2) }) });

    const turn = make("div", "turn", this.root);
    this.clocks = new Clocks(turn, (pair) => this.pick({ pair }));
    this.key = make("p", "key", turn);
    for (const [className, text] of [["from", "PE(p)"], ["turned", "PE(p) turned by k·ωᵢ"], ["table", "PE(p + k), its own row"]]) make("span", className, this.key, text);
    const one = make("div", "one", turn);
    this.dial = new Dial(one, { turn: (angle) => this.byHand(angle), release: () => this.release() });
    this.said = make("div", "said", one);
    this.numbers = make("div", "equation", turn);

    const lower = make("div", "lower", this.root);
    this.facts = new Facts(lower, ({ row, column }) => this.pick({ p: row, k: column - row }));
  }

  slider(parent, name, title) {
    return rangeInput(parent, title, { min: 0, max: 1, step: 1 }, {
      input: (number) => this.move(name, number),
      change: () => this.release(),
    });
  }

  // While it moves: in the browser when the block is here, else by asking.
  move(name, number) {
    this.last = name;
    this.held[name] = number;
    this.view = { ...this.view, [name]: number };
    if (name === "d_model") return this.wish({});
    if (this.frame()) this.draw();
    else this.wish({});
  }

  // Let go: Python sends the blocks that cross here, and the link holds what is shown.
  release() {
    this.held = {};
    this.whole = undefined;
    this.commit();
  }

  pick(change) {
    const { offsets } = this.header;
    for (const [name, number] of Object.entries(change)) this.move(name, name === "k" ? Math.max(offsets[0], Math.min(offsets[1], number)) : number);
    this.release();
  }

  byHand(angle) {
    const [least, most] = this.header.offsets;
    this.whole = Math.max(least, Math.min(most, (this.whole ?? this.view.k) + angle / this.array("omega").values[this.view.pair]));
    const k = Math.round(this.whole);
    if (k !== this.view.k) this.move("k", k);
  }

  commit() {
    this.wantsCommit = true;
    this.latch.ask(this.view);
  }

  show() {
    // What is held in the hand while an answer arrives stays as the hand has it.
    this.view = { ...this.view, ...this.held };
    this.view.pair = Math.min(this.view.pair, this.header.view.d_model / 2 - 1);
    const { limits } = this.header;
    for (const [name, [min, max, step]] of Object.entries(limits)) Object.assign(this.sliders[name].input, { min, max, step });
    this.draw();
  }

  // Where R_k PE(p) stands for the p and k in the hand, or null when neither block that is here holds it.
  frame() {
    const { view } = this, at = this.header.view, width = at.d_model;
    const row = (name, index) => this.array(name).values.subarray(index * width, (index + 1) * width);
    const k = view.k - this.header.offsets[0];
    if (view.p === at.p) return { turned: row("by_k", k), apart: this.array("apart_k").values[k] };
    if (view.k === at.k) return { turned: row("by_p", view.p), apart: this.array("apart_p").values[view.p] };
    return null;
  }

  // What is read from the page is read first and what is written is written last: a layout in between would cost more
  // than all the drawing.
  draw() {
    const frame = this.frame();
    if (!frame) return; // an answer is on its way
    const { p, k, pair } = this.view, width = this.header.view.d_model, n = width / 2, first = -this.header.offsets[0];
    const table = this.array("table").values, row = (position) => table.subarray((first + position) * width, (first + position + 1) * width);
    const here = { p, k, pair, width, n, from: row(p), table: row(p + k), turned: frame.turned, omega: this.array("omega").values };
    const colours = inks(this.root), wide = new Map([this.heat, this.clocks, ...this.facts.figures].map((figure) => [figure, figure.canvas.parentElement.clientWidth]));
    const size = Math.min(230, Math.max(150, this.root.clientWidth * 0.19));
    this.page = { colours, wide, size, theme: `${colours.text} ${colours.paper}` };
    this.texts = [];
    this.value = { d_model: width, p, k, pair }[this.last];
    this.drawHeat(here, table.subarray(first * width));
    this.drawTurn(here);
    this.drawNumbers(here);
    this.drawChecks(here, frame.apart);
    this.facts.draw(here, this);
    for (const [name, slider] of Object.entries(this.sliders)) {
      if (slider.input.value !== String(this.view[name])) slider.input.value = this.view[name];
      this.tell(slider.value, minus(this.view[name]));
    }
    for (const [element, text] of this.texts) if (element.textContent !== text) element.textContent = text;
  }

  tell(element, text) {
    this.texts.push([element, text]);
  }

  drawHeat({ p, k, pair, width }, below) {
    const { positions } = this.header, { colours, wide } = this.page, to = p + k;
    if (this.shown?.block !== this.array) {
      this.shown = { block: this.array, values: below.subarray(0, positions * width), rows: countTo(positions), columns: countTo(width) };
    }
    const { values, rows, columns } = this.shown;
    const marks = [{ column: 2 * pair, span: 2, colour: colours.accent, fine: true }, { row: p, colour: colours.text }, { row: to, colour: colours.accent }];
    this.heat.draw({ values, rows, columns, every: [10, Math.max(2, 2 ** Math.ceil(Math.log2(width / 10)))], most: 1, axes: ["position", "dimension"], marks }, this.value,
      `Encoding of ${positions} positions by ${width} dimensions; position ${p} and position ${to} marked.`, colours, wide.get(this.heat));
    const outside = to < 0 || to >= positions;
    this.tell(this.heat.note, outside ? `Position ${minus(to)} is outside this picture; the sinusoids, and the rotation, reach it all the same.` : "Positions down, dimensions across: −1 orange, 0 paper, +1 blue.");
  }

  drawTurn({ p, k, pair, n, from, turned, table, omega }) {
    const { colours, wide, size } = this.page, of = (vector, i) => [vector[2 * i], vector[2 * i + 1]];
    const hands = (i) => ({ from: of(from, i), turned: of(turned, i), table: of(table, i), angle: k * omega[i] });
    this.clocks.draw(n, hands, pair, this.value, `${n} pairs as points on circles, turned from position ${p} by the offset ${k}; pair ${pair} picked.`, colours, wide.get(this.clocks));
    const turns = (k * omega[pair]) / (2 * Math.PI);
    this.dial.draw(size, hands(pair), this.value, `Pair ${pair}: turned ${Math.abs(turns).toFixed(3)} turns ${turns < 0 ? "anticlockwise" : "clockwise"}. Drag to turn k.`, colours);
  }

  drawNumbers({ p, k, pair, from, turned, table, omega }) {
    this.cells ??= this.layNumbers();
    const angle = k * omega[pair], wave = this.array("wavelength").values[pair], way = angle < 0 ? "anticlockwise" : "clockwise";
    const turn = k ? `k·ω = ${threeDigits(angle).trim()} rad, ${Math.abs(angle / (2 * Math.PI)).toFixed(3)} turns ${way}.` : "k = 0: not turned.";
    this.tell(this.cells.title, `Pair i = ${pair}: dimensions ${2 * pair} and ${2 * pair + 1}`);
    this.tell(this.cells.say, `ω = ${omega[pair].toPrecision(3)}: once around in ${wave < 1000 ? wave.toFixed(1) : Math.round(wave).toLocaleString("en")} positions. ${turn}`);
    const [cos, sin] = this.array("turns").values.subarray(((k - this.header.offsets[0]) * omega.length + pair) * 2);
    const numbers = [cos, sin, -sin, cos, from[2 * pair], from[2 * pair + 1], turned[2 * pair], turned[2 * pair + 1], table[2 * pair], table[2 * pair + 1]];
    this.cells.numbers.forEach((cell, i) => this.tell(cell, threeDigits(numbers[i])));
    this.tell(this.cells.position, `PE(${minus(p + k)})`);
    this.tell(this.cells.start, `PE(${p})`);
    this.tell(this.cells.offset, minus(k));
  }

  // R_k times PE(p) equals PE(p + k), in the order of Eq. 2.8: matrices as small tables with brackets.
  layNumbers() {
    const cells = { title: make("h3", "", this.said), say: make("p", "", this.said), numbers: [] }, row = this.numbers;
    const matrix = (name, count, className) => {
      const box = make("div", `of ${className}`, row);
      const title = make("span", "name", box, name), inner = make("div", `matrix wide${count / 2}`, box);
      for (let i = 0; i < count; i++) cells.numbers.push(make("span", "", inner));
      return title;
    };
    cells.offset = make("sub", "", matrix("R", 4, ""));
    cells.start = matrix("PE(p)", 2, "from");
    make("span", "sign", row, "=");
    matrix("turned", 2, "turned");
    make("span", "sign", row, "=");
    cells.position = matrix("PE(p + k)", 2, "table");
    return cells;
  }

  drawChecks({ p, k, width }, apart) {
    const at = k - this.header.offsets[0], { tokens } = this.header;
    const checks = [
      ["R<sub>k</sub> PE(p) − PE(p + k)", tiny(apart), `largest of ${width} dimensions`],
      ["det R<sub>k</sub> − 1", tiny(this.array("determinant").values[at]), ""],
      ["R<sub>k</sub><sup>⊤</sup>R<sub>k</sub> − I", tiny(this.array("orthogonality").values[at]), "largest entry"],
    ];
    this.checkCells ??= checks.map(([name, , note]) => {
      make("dt", "", this.checks).innerHTML = name;
      return { value: make("dd", "", this.checks), note: note && make("dd", "quiet", this.checks, note) };
    });
    checks.forEach(([, value, note], i) => {
      this.tell(this.checkCells[i].value, value);
      if (note) this.tell(this.checkCells[i].note, note);
    });
    this.tell(this.token, p < tokens.length ? `Your token at position ${p}: ${tokens[p]}` : "");
  }

  destroy() {
    this.resized.disconnect();
  }
}

export default mounted("positions", PositionsPanel);
