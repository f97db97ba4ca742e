// The Saturation page: random q and k of every width are here already, so dragging d_k asks nobody.
const SIDES = ["÷ √d_k", "not divided"];
const DISTRIBUTION_NAMES = { normal: "normal", uniform: "uniform", sign: "±1" };
const QUANTITY_NAMES = {
  variance: "variance of q·k", gap: "variance of the gap", entropy: "row entropy, nats", largest: "largest weight", trace: "trace of the Jacobian",
  typical: "σ′ at the typical gap", median: "σ′, median", mean: "σ′, mean",
};
const QUANTITIES = Object.keys(QUANTITY_NAMES), SLOPES = ["typical", "median", "mean"];
const LARGEST_ENTRY = 0.25; // of any softmax Jacobian: s (1 - s) at s = 1/2

class SaturationPanel extends LivePanel {
  constructor(root, send) {
    super(root, send);
    this.build();
    this.resized = onNewWidth(root, () => this.header && this.draw());
  }

  build() {
    const controls = make("div", "controls", this.root);
    this.width = rangeInput(controls, "d_k", { min: 0, max: 1, step: 1 }, {
      input: (index) => {
        this.toWidth(index);
        this.held = this.view.width;
      },
      change: () => {
        this.held = undefined;
        this.choose({});
      },
    });
    make("span", "quiet", controls, "keys");
    this.showKeys = choiceOf(controls, "keys", { 2: "2", 4: "4", 8: "8", 16: "16", 32: "32" }, (keys) => this.choose({ keys: Number(keys) }));
    make("span", "quiet", controls, "components of q and k");
    this.showDistribution = choiceOf(controls, "distribution", DISTRIBUTION_NAMES, (distribution) => this.choose({ distribution }));
    const again = make("button", "again", controls, "Draw again");
    again.type = "button";
    again.addEventListener("click", () => this.choose({ draw: (this.view.draw + 1) % 1000 }));
    this.readout = make("span", "readout quiet", controls);

    this.sides = SIDES.map((name, side) => {
      const box = make("section", `side side-${side}`, this.root);
      const read = (text) => (this.readout.textContent = text);
      const bars = new Figure(box, `Weights, ${name}`, 236);
      const jacobian = new Picture(box, `Jacobian, ${name}`, "", 26, { read });
      return { bars, jacobian };
    });

    this.tell = make("p", "tell", this.root);
    const curve = make("section", "curve", this.root);
    this.chart = new Chart(curve, "", 340, "", { scrub: (width, settled) => this.pickWidth(width, settled), key: (event) => this.key(event) });
    sideLegend(curve, "not divided");
    this.table = make("section", "numbers", this.root);
    this.layTable();
  }

  layTable() {
    this.tableTitle = make("h3", "", this.table);
    const table = make("table", "", this.table), top = make("tr", "", table);
    for (const text of ["", "÷ √d_k", "not divided", "ratio"]) make("th", "", top, text);
    this.cells = QUANTITIES.map((name) => {
      const row = make("tr", "", table);
      const button = make("button", "", make("th", "", row), QUANTITY_NAMES[name]);
      button.type = "button";
      button.addEventListener("click", () => this.choose({ curve: name }));
      const cells = [0, 1, 2].map(() => {
        const cell = make("td", "", row);
        return [make("span", "theory", cell), make("span", "quiet", cell)];
      });
      return { button, cells };
    });
    make("p", "note quiet", this.table, "Upper number theory, lower number measured. Choose a row to see its curve.");
    this.means = make("p", "tell", this.table);
  }

  show(settled) {
    if (this.held) this.view.width = this.held; // an answer does not move what is being dragged
    const { widths } = this.header;
    this.width.input.max = widths.length - 1;
    if (settled) {
      this.showKeys(this.view.keys);
      this.showDistribution(this.view.distribution);
    }
    this.draw();
  }

  // Drawn at once; the choice is sent, for the link, when it is let go.
  toWidth(index) {
    this.view = { ...this.view, width: this.header.widths[index] };
    this.draw();
  }

  draw() {
    const { widths } = this.header, { width } = this.view, at = widths.indexOf(width);
    this.width.show(at, width);
    this.width.input.setAttribute("aria-valuetext", width);
    // Pictures first, words after: a picture reads its width, and after a change of words that costs a new layout.
    SIDES.forEach((name, side) => this.drawSide(side, at));
    this.drawCurve(at);
    SIDES.forEach((name, side) => this.tellSide(side, at));
    this.drawTell(at);
    this.drawTable(at);
  }

  // The numbers of one width: those of array (2, W, ...) at [side, at].
  slice(name, side, at) {
    const { shape, values } = this.array(name), size = shape.slice(2).reduce((a, b) => a * b, 1), start = (side * shape[1] + at) * size;
    return values.subarray(start, start + size);
  }

  drawSide(side, at) {
    const { keys } = this.header.drawn, { bars, jacobian } = this.sides[side];
    const weights = this.slice("weights", side, at), scores = this.slice("scores", side, at);
    const [trace, entry] = [this.slice("trace", side, at)[0], this.slice("entry", side, at)[0]];
    const colour = (colours) => `rgb(${(side ? colours.opposite : colours.ink).join()})`;
    bars.draw(
      (pen, width, height, colours) => paintBars(pen, width, height, weights, scores, colour(colours), colours),
      () => [["key", "logit", "weight"], ...Array.from(weights, (weight, i) => [i + 1, scores[i], weight])],
      at,
      `Weights of ${keys} keys at d_k ${this.view.width}, ${SIDES[side]}: ${Array.from(weights, digits).join(", ")}`,
    );
    const names = Array.from(weights, (_, i) => String(i + 1));
    const grid = { name: `Jacobian, ${SIDES[side]}`, weights: { shape: [1, 1, keys, keys], values: this.slice("jacobian", side, at) }, rows: names, columns: names, shown: keys, current: -1, bare: true, most: LARGEST_ENTRY };
    jacobian.draw(grid, at, `${grid.name}: ds_i/dz_j for ${keys} keys at d_k ${this.view.width}; trace ${four(trace)}, largest entry ${four(entry)}.`);
  }

  tellSide(side, at) {
    const { keys } = this.header.drawn, { bars, jacobian } = this.sides[side];
    const [entropy, trace, entry] = ["entropy", "trace", "entry"].map((name) => this.slice(name, side, at)[0]);
    bars.note.textContent = `largest ${four(Math.max(...this.slice("weights", side, at)))}   entropy ${four(entropy)} of ${four(Math.log(keys))} nats`;
    const sums = Array.from(this.slice("column_sums", side, at));
    const worst = sums.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a), 0);
    const listed = keys <= 8 ? sums.map((sum) => (sum ? sum.toExponential(0).replaceAll("-", "−") : "0")).join("  ") : `at most ${Math.abs(worst).toExponential(0)} from 0`;
    jacobian.note.textContent = `trace ${four(trace)}   largest entry ${four(entry)}\ncolumns sum to ${listed}`;
  }

  drawTell(at) {
    const [scaled, plain] = [0, 1].map((side) => this.slice("trace", side, at)[0]);
    const { width } = this.view, ratio = scaled / plain;
    this.tell.textContent = `One query, ${this.header.drawn.keys} keys, ${width} random dimension${width > 1 ? "s" : ""} each. `
      + (width === 1 ? "With one dimension both sides are the same: drag d_k to the right." :
        `Without the division the logits z grow with d_k, one weight takes all, and the whole Jacobian fades at once: its trace, 1 − |s|², is ${ratio >= 1 ? `${four(ratio)} times smaller` : `here ${four(1 / ratio)} times larger`} (Eq. 1.4b). Draw again: some rows keep a near tie at any width.`);
  }

  // Four numbers of a quantity at one width: theory with and without the division, then the same measured.
  numbers(quantity, at) {
    const q = this.header.quantities.indexOf(quantity), count = this.header.widths.length;
    const theory = this.array("theory").values, measured = this.array("measured").values;
    const place = (side) => (q * 2 + side) * count + at;
    return { theory: [0, 1].map((side) => theory[place(side)]), measured: [0, 1].map((side) => measured.subarray(3 * place(side), 3 * place(side) + 3)) };
  }

  drawCurve(at) {
    const { widths } = this.header, { curve } = this.view, slopes = SLOPES.includes(curve);
    const shown = slopes ? SLOPES : [curve], isPower = (width) => Number.isInteger(Math.log2(width));
    const series = [], bounds = [];
    for (const name of shown) {
      const dash = { median: [6, 4], mean: [2, 3] }[name], strong = name === curve;
      for (const side of [0, 1]) {
        const all = widths.map((_, i) => this.numbers(name, i)), colour = side ? "orange" : "blue", said = `${slopes ? `${name}, ` : ""}${SIDES[side]}`;
        const line = all.map(({ theory }, i) => [widths[i], theory[side]]);
        const points = all.map(({ measured }, i) => [widths[i], ...measured[side]]).filter(([d_k]) => isPower(d_k) || d_k === widths[at]);
        series.push({ name: said, colour, dash, strong, wide: strong ? 2.5 : 1.5, label: slopes && side ? name : "", labelAt: 0.82, points: line });
        series.push({ name: "", colour, dots: strong ? 3.5 : 2.5, bars: strong, points });
        bounds.push(...line.map(([, y]) => y), ...points.flatMap(([, value, , high]) => [value || Infinity, high]));
      }
    }
    const x = { name: "d_k", min: 1, max: widths.at(-1), log: true, ticks: widths.filter(isPower).map((width) => [width, width.toLocaleString("en")]) };
    const y = { name: curve, min: Math.min(...bounds.filter((y) => y > 0)) * 0.6, max: Math.max(...bounds.filter(Number.isFinite)) * 1.15, log: true };
    const title = slopes ? "Gradient σ′(gap) between two keys, against d_k" : `${QUANTITY_NAMES[curve][0].toUpperCase()}${QUANTITY_NAMES[curve].slice(1)}, against d_k`;
    const rows = () => [["quantity", "divided", "d_k", "theory", "measured", "low", "high"],
      ...shown.flatMap((name) => [0, 1].flatMap((side) => widths.map((d_k, i) => {
        const { theory, measured } = this.numbers(name, i);
        return [name, side ? "no" : "yes", d_k, theory[side], ...measured[side]];
      })))];
    const { theory, measured } = this.numbers(curve, at);
    this.chart.show({ x, y, series, rows, now: { x: widths[at], text: widths[at].toLocaleString("en") } }, at, `${title}. At d_k ${widths[at]}: theory ${four(theory[0])} divided, ${four(theory[1])} not; measured ${four(measured[0][0])} and ${four(measured[1][0])}.`);
    say(this.chart.title, title);
    say(this.chart.note, this.header.notes[curve]);
  }

  drawTable(at) {
    const { width, curve } = this.view;
    this.tableTitle.textContent = `At d_k ${width.toLocaleString("en")}`;
    QUANTITIES.forEach((name, i) => {
      const { theory, measured } = this.numbers(name, at), { button, cells } = this.cells[i];
      const larger = theory[0] >= theory[1] ? [0, 1] : [1, 0];
      const put = (column, upper, lower) => [upper, lower].forEach((number, line) => (cells[column][line].textContent = four(number)));
      put(0, theory[0], measured[0][0]);
      put(1, theory[1], measured[1][0]);
      put(2, theory[larger[0]] / theory[larger[1]], measured[larger[0]][0] / measured[larger[1]][0]);
      button.setAttribute("aria-pressed", name === curve);
    });
    const ratio = (name) => {
      const { theory } = this.numbers(name, at);
      return four(theory[0] / theory[1]);
    };
    this.means.textContent = `At a gap of one standard deviation the division keeps ${ratio("typical")} times the gradient, on average over all gaps ${ratio("mean")} times. `
      + `A few pairs of keys nearly tie at any width and carry the mean: without the division it falls like 1/√(4π d_k) = ${four(1 / Math.sqrt(4 * Math.PI * width))}, not exponentially. What starves is the typical pair.`;
  }

  pickWidth(wanted, settled) {
    const distance = (width) => Math.abs(Math.log(width / wanted));
    this.toWidth(this.header.widths.reduce((best, width, i, all) => (distance(width) < distance(all[best]) ? i : best), 0));
    if (settled) this.choose({});
  }

  key(event) {
    const at = this.header.widths.indexOf(this.view.width), last = this.header.widths.length - 1;
    const to = { ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.toWidth(Math.min(last, Math.max(0, to)));
    this.choose({});
  }

  destroy() {
    this.resized.disconnect();
  }
}

// One bar a key, on a fixed scale from 0 to 1; the logit under each where there is room.
function paintBars(pen, width, height, weights, scores, colour, colours) {
  const left = 26, top = 14, bottom = height - 34, pitch = (width - left - 4) / weights.length, wide = Math.min(56, pitch - 3);
  const y = (weight) => bottom - (bottom - top) * weight, roomy = pitch >= 34;
  pen.textBaseline = "middle";
  pen.lineWidth = 1;
  for (const weight of [0, 0.5, 1]) {
    pen.strokeStyle = colours.line;
    pen.beginPath();
    pen.moveTo(left, y(weight));
    pen.lineTo(width, y(weight));
    pen.stroke();
    label(pen, String(weight), left - 6, y(weight), "right", colours);
  }
  weights.forEach((weight, i) => {
    const middle = left + (i + 0.5) * pitch;
    pen.fillStyle = colour;
    pen.fillRect(middle - wide / 2, y(weight), wide, bottom - y(weight));
    if (roomy) {
      label(pen, digits(weight), middle, y(weight) - 8, "center", colours, { opacity: 1 });
      label(pen, scores[i].toFixed(1), middle, bottom + 26, "center", colours, { opacity: 0.6 });
    }
    if (pitch >= 14) label(pen, String(i + 1), middle, bottom + 11, "center", colours);
  });
  if (roomy) label(pen, "z", left - 8, bottom + 26, "right", colours, { opacity: 0.6 });
}

export default mounted("saturation", SaturationPanel);
