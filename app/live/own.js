// A model's own q and k: for every layer and head one number with the division by sqrt(d_k), and with it undone.
const SITE_NAMES = { encoder: "Encoder self", decoder: "Decoder self", cross: "Cross" };
const NUMBER_NAMES = { variance: "variance of q·k", gap: "variance of the gap", entropy: "row entropy", largest: "largest weight", trace: "trace of the Jacobian" };
const SPREADS = { min: 0.01, max: 1e8 }; // one axis for all models

class OwnPanel extends LivePanel {
  constructor(root, send) {
    super(root, send);
    const controls = make("div", "controls", root);
    this.slider = rangeInput(controls, "trained model's d_k", { min: 0, max: 1, step: 1 }, {
      input: (index) => {
        this.slider.value.textContent = this.header.models[index].label;
        this.wish({ model: this.header.models[index].name });
      },
      change: () => this.commit(),
    });
    this.showNumber = choiceOf(controls, "number", NUMBER_NAMES, (number) => this.choose({ number }));
    this.showSite = choiceOf(controls, "attention", SITE_NAMES, (site) => this.choose({ site }));
    this.showSample = choiceOf(controls, "sequences", { own: "your sequence", batch: "a batch of 128" }, (sample) => this.choose({ sample }));
    this.showLearned = choiceOf(controls, "weights", { trained: "trained", untrained: "before training" }, (learned) => this.choose({ learned }));
    const box = make("div", "", root);
    this.figure = new Figure(box, "", 100);
    this.legend = make("div", "", box);
    this.tell = make("p", "tell", root);
    this.status = make("p", "note quiet", root);
    this.resized = onNewWidth(root, () => this.header && this.draw());
  }

  show(settled) {
    const { models, status, divides } = this.header, at = models.findIndex(({ name }) => name === this.header.view.model);
    this.slider.input.max = models.length - 1;
    this.slider.row.hidden = models.length < 2; // a range of one value cannot be moved
    if (settled) this.slider.show(at, models[at].label);
    this.at = at;
    this.status.textContent = status;
    this.legend.replaceChildren();
    sideLegend(this.legend, divides ? "division undone" : "not divided, as in this model");
    this.draw();
  }

  draw() {
    const { number, site, sample, learned } = this.header.view, { d_k } = this.header.models[this.at];
    this.showNumber(number);
    this.showSite(site);
    this.showSample(sample);
    this.showLearned(learned);
    const { shape, values } = this.array(`${learned}-${site}`), [layers, heads] = shape, { numbers } = this.header, n = numbers.indexOf(number);
    const of = (layer, head, side) => values[((layer * heads + head) * numbers.length + n) * 2 + side];
    const axis = { variance: SPREADS, gap: SPREADS, entropy: { min: 0, max: Math.log(this.header.keys), linear: true } }[number] ?? { min: 0, max: 1, linear: true };
    const theory = { variance: [1, d_k], gap: [2, 2 * d_k] }[number] ?? [];
    this.figure.title.textContent = `${SITE_NAMES[site]}-attention: ${NUMBER_NAMES[number]}, by layer and head`;
    const across = acrossOf(heads, this.figure.canvas.parentElement.clientWidth), lines = Math.ceil(heads / across);
    this.figure.height = 46 + layers * lines * 60;
    const rows = () => [["layer", "head", "divided", number], ...each(layers, heads).flatMap(([layer, head]) => [0, 1].map((side) => [layer + 1, head + 1, side ? "no" : "yes", of(layer, head, side)]))];
    const said = each(layers, heads).map(([layer, head]) => `layer ${layer + 1} head ${head + 1}: ${four(of(layer, head, 0))} divided, ${four(of(layer, head, 1))} not`);
    this.figure.draw((pen, width, height, colours) => paintHeads(pen, width, height, { layers, heads, across, lines, of, axis, theory }, colours), rows, this.at, `${this.figure.title.textContent}. ${said.join("; ")}.`);
    const mean = (when, side) => {
      const all = this.array(`${when}-${site}`).values.filter((_, i) => i % (2 * numbers.length) === 2 * n + side);
      return four(all.reduce((a, b) => a + b, 0) / all.length);
    };
    const beside = theory.length ? `; independent components of variance 1 would give ${four(theory[0])} and ${four(theory[1])} (thin marks)` : "";
    this.tell.textContent = Number.isNaN(of(0, 0, 0)) ? "Fewer than two keys leave nothing to choose between: no row to measure."
      : `Means over all heads. Before training: ${mean("untrained", 0)} with the division, ${mean("untrained", 1)} without${beside}. After training: ${mean("trained", 0)} and ${mean("trained", 1)}. `
      + "The division sets where training starts; where a head goes from there, training decides.";
  }

  destroy() {
    this.resized.disconnect();
  }
}

function each(layers, heads) {
  return Array.from({ length: layers * heads }, (_, i) => [Math.floor(i / heads), i % heads]);
}

// How many heads stand side by side: all of them, unless that leaves no room for their numbers.
const LEFT = 20, gapOf = (heads) => (heads > 4 ? 8 : 18);
const acrossOf = (heads, width) => Math.min(heads, Math.max(1, Math.floor((width - LEFT + gapOf(heads)) / (34 + gapOf(heads)))));

// A small axis for each head, layers down and heads across: blue with the division, orange without.
function paintHeads(pen, width, height, { layers, heads, across, lines, of, axis, theory }, colours) {
  const left = LEFT, gap = gapOf(heads), cell = (width - left - gap * (across - 1)) / across, pitch = 60;
  const share = (value) => {
    const within = Math.min(Math.max(value, axis.min), axis.max);
    return axis.linear ? (within - axis.min) / (axis.max - axis.min || 1) : Math.log(within / axis.min) / Math.log(axis.max / axis.min);
  };
  pen.textBaseline = "middle";
  pen.setLineDash([]);
  const line = (x0, y0, x1, y1, colour, thick) => {
    Object.assign(pen, { strokeStyle: colour, lineWidth: thick });
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.lineTo(x1, y1);
    pen.stroke();
  };
  const inkOf = (side) => `rgb(${(side ? colours.opposite : colours.ink).join()})`;
  for (const [layer, head] of each(layers, heads)) {
    const x0 = left + (head % across) * (cell + gap) + 5, inner = cell - 10, y = 54 + (layer * lines + Math.floor(head / across)) * pitch, x = (value) => x0 + inner * share(value);
    if (lines > 1) label(pen, `${head + 1}`, x0, y + 15, "left", colours, { size: 10, opacity: 0.65 });
    else if (layer === 0) label(pen, cell < 48 ? `${head + 1}` : `head ${head + 1}`, x0, 8, "left", colours, { opacity: 0.65 });
    if (head === 0) label(pen, String(layer + 1), 4, y, "left", colours, { opacity: 0.65 });
    line(x0, y, x0 + inner, y, colours.line, 1);
    theory.forEach((value, side) => line(x(value), y - 9, x(value), y + 9, inkOf(side), 1));
    const both = [of(layer, head, 0), of(layer, head, 1)];
    if (both.some(Number.isNaN)) continue;
    line(x(both[0]), y, x(both[1]), y, colours.line, 3);
    both.forEach((value, side) => {
      pen.fillStyle = inkOf(side);
      pen.beginPath();
      pen.arc(x(value), y, 5, 0, 2 * Math.PI);
      pen.fill();
    });
    const size = cell < 70 ? 10 : 12, narrow = cell < 100;
    both.forEach((value, side) => {
      pen.font = `${size}px ${colours.font}`;
      pen.textAlign = narrow ? "left" : side ? "right" : "left";
      pen.fillStyle = inkOf(side);
      pen.fillText(brief(value), narrow ? x0 - 3 : side ? x0 + inner : x0, narrow ? y - 25 + 12 * side : y - 18);
    });
  }
  const bottom = height - 14, inner = cell - 10;
  const [low, high] = axis.linear ? ["0", String(Number(axis.max.toPrecision(3)))] : ["0.01", "10⁸"], style = { opacity: 0.6 };
  if (cell < 70) return label(pen, `each from ${low} to ${high}`, left + 5, bottom, "left", colours, style);
  for (let head = 0; head < across; head++) {
    const x0 = left + head * (cell + gap) + 5;
    label(pen, low, x0, bottom, "left", colours, style);
    label(pen, high, x0 + inner, bottom, "right", colours, style);
  }
}

// Three digits.
function brief(x) {
  if (x >= 100) return Math.round(x).toLocaleString("en");
  return x > 0 && x < 0.0005 ? "<.001" : x.toFixed(x < 1 ? 3 : x < 10 ? 2 : 1);
}

export default mounted("own", OwnPanel);
