// What holds for a whole width: inner products, wavelengths, and what arithmetic costs.
class Facts {
  constructor(parent, pick) {
    const read = (text) => (this.products.note.textContent = text || this.productNote);
    this.products = new Sheet(parent, "Inner products PE(p)·PE(q)", { most: 4, square: true }, { read, pick });
    this.curve = new Chart(parent, "The same by q − p", 230);
    this.waves = new Chart(parent, "Wavelengths", 230);
    this.rounding = new Chart(parent, "What arithmetic costs", 230);
    this.figures = [this.products, this.curve, this.waves, this.rounding];
    this.drawn = {};
  }

  // panel gives its block (header, array), its page (colours, wide: each figure's width, theme), value and tell().
  draw(here, panel) {
    this.panel = panel;
    this.drawProducts(here);
    this.drawCurve(here);
    this.drawWaves(here);
    this.drawRounding();
  }

  drawProducts({ p, k, width }) {
    const { positions } = this.panel.header, { colours, wide } = this.panel.page, products = this.panel.array("products"), to = p + k;
    if (this.grid?.block !== this.panel.array) this.grid = { block: this.panel.array, values: products.values, rows: countTo(positions), columns: countTo(positions) };
    const { values, rows, columns } = this.grid, spread = Math.max(...this.panel.array("spread").values);
    this.productNote = `They depend on q − p alone: along a diagonal they differ by at most ${tiny(spread)}. |PE(p)|² = d/2 = ${width / 2}, within ${tiny(this.panel.header.norm_error)}.`;
    const marks = [{ row: p, column: to, colour: colours.accent }];
    this.products.draw({ values, rows, columns, every: [20, 20], most: width / 2, axes: ["p", "q"], marks }, this.panel.value, `Inner products of ${positions} positions: constant along each diagonal.`, colours, wide.get(this.products));
    if (!this.products.cursor) this.panel.tell(this.products.note, this.productNote);
  }

  drawCurve({ k, width }) {
    const { positions, nearest } = this.panel.header, { colours, wide } = this.panel.page, last = positions - 1;
    const mean = this.panel.array("mean").values, cosines = this.panel.array("cosines").values;
    const least = Math.min(0, ...mean), here = mean[last + k], over = (values) => Array.from(values, (value, i) => [i - last, value]);
    const series = [
      { name: "sum of cos((p − q)·ω)", colour: "blue", points: over(cosines) },
      { name: "measured mean", colour: colours.text, dots: 1.3, points: over(mean) },
    ];
    const x = { name: "q − p", min: -last, max: last, ticks: [-last, -50, 0, 50, last].map((value) => [value, minus(value)]) };
    const y = { name: "product", min: least, max: width / 2, ticks: [[0, "0"], [width / 2, String(width / 2)]] };
    this.curve.show({ x, y, series, now: { x: k, y: here } }, this.panel.value,
      `Inner product over q minus p: at ${k} it is ${here.toFixed(3)}; largest, ${width / 2}, at 0.`, colours, wide.get(this.curve));
    const [p, q, distance] = nearest;
    this.panel.tell(this.curve.note, `Line: Σ cos((q − p)·ωᵢ); dots: measured. At k = ${minus(k)}: ${threeDigits(here).trim()}. Nearest two of these positions: ${p} and ${q}, ${distance.toFixed(3)} apart.`);
  }

  drawWaves({ pair, n, width }) {
    const { colours, wide, theme } = this.panel.page, wave = this.panel.array("wavelength").values, last = wave[n - 1];
    if (!this.isNew("waves", [this.panel.array, pair, theme, wide.get(this.waves)])) return;
    const series = [{ name: "wavelength", colour: "blue", dots: 2, points: Array.from(wave, (value, i) => [i, value]) }];
    const x = { name: "pair i", min: 0, max: Math.max(1, n - 1), ticks: [[0, "0"], [n - 1, String(n - 1)]] }, y = { name: "wavelength", min: 1, max: 1e5, log: true };
    this.waves.show({ x, y, series, now: { x: pair, y: wave[pair] } }, this.panel.value,
      `Wavelengths of ${n} pairs from 2 pi to ${last.toFixed(1)}; pair ${pair} has ${wave[pair].toFixed(1)}.`, colours, wide.get(this.waves));
    const turns = last / (2 * Math.PI);
    const counted = turns < 100 ? turns.toFixed(2) : Math.round(turns).toLocaleString("en");
    this.panel.tell(this.waves.note, n === 1 ? "One pair: 2π, and nothing slower." : `From 2π to 10000^(${width - 2}/${width})·2π: ${counted} × 2π, not 10,000 × 2π.`);
  }

  // Whether a figure that does not follow every slider has to be drawn again.
  isNew(figure, state) {
    const old = this.drawn[figure];
    this.drawn[figure] = state;
    return !old || state.some((part, i) => part !== old[i]);
  }

  drawRounding() {
    const { colours, wide, theme } = this.panel.page;
    if (!this.isNew("rounding", [this.panel.array, theme, wide.get(this.rounding)])) return;
    const line = (name, key, colour) => ({ name, colour, points: Array.from(this.panel.array(key).values, (value, i) => [i, value]).slice(1) }); // position 0 is exact
    const series = [line("every step in float32", "steps", "orange"), line("rounded to float32 once", "once", `rgb(${colours.grey.join()})`), line("Eq. 2.8 in double", "identity", "blue")];
    const most = series.map(({ points }) => Math.max(...points.map((point) => point[1]))), all = series[0].points.length + 1;
    const x = { name: "position", min: 0, max: all, ticks: [0, 200, 400, 600].map((value) => [value, String(value)]) }, y = { name: "error", min: 1e-17, max: 1e-3, log: true };
    this.rounding.show({ x, y, series }, this.panel.value,
      `Largest errors over ${all} positions: ${series.map(({ name }, i) => `${name} ${tiny(most[i])}`).join("; ")}.`, colours, wide.get(this.rounding));
    this.panel.tell(this.rounding.note, `Below position ${all}: Eq. 2.8 holds to ${tiny(most[2])} in double (blue). A table rounded once to float32 is off by ${tiny(most[1])} (grey), one with its angles in float32 by ${tiny(most[0])} (orange).`);
  }
}
