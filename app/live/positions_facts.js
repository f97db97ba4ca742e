// What holds for a whole width: inner products, wavelengths, and what arithmetic costs.
class Facts {
  constructor(parent, pick) {
    const read = (text) => (this.products.note.textContent = text || this.productNote);
    this.products = new Sheet(parent, "Inner products PE(p)·PE(q)", { most: 4, square: true }, { read, pick });
    this.curve = new Plot(parent, "The same by q − p", 230);
    this.waves = new Plot(parent, "Wavelengths", 230);
    this.rounding = new Plot(parent, "What arithmetic costs", 230);
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
    const xs = Array.from(mean, (_, i) => i - last), least = Math.min(0, ...mean), here = mean[last + k];
    const lines = [
      { name: "sum of cos((p - q) omega)", xs, ys: cosines, colour: `rgb(${colours.ink.join()})` },
      { name: "measured mean", xs, ys: mean, colour: colours.text, dots: 1.3 },
    ];
    const ticks = { x: [-last, -50, 0, 50, last].map((x) => [x, minus(x)]), y: [[0, "0"], [width / 2, String(width / 2)]] };
    this.curve.draw({ x: [-last, last], y: [least, width / 2], ticks, axis: "q − p", lines, mark: { x: k, y: here, colour: colours.accent } }, this.panel.value,
      `Inner product over q minus p: at ${k} it is ${here.toFixed(3)}; largest, ${width / 2}, at 0.`, colours, wide.get(this.curve));
    const [p, q, distance] = nearest;
    this.panel.tell(this.curve.note, `Line: Σ cos((q − p)·ωᵢ); dots: measured. At k = ${minus(k)}: ${threeDigits(here).trim()}. Nearest two of these positions: ${p} and ${q}, ${distance.toFixed(3)} apart.`);
  }

  drawWaves({ pair, n, width }) {
    const { colours, wide, theme } = this.panel.page, wave = this.panel.array("wavelength").values, last = wave[n - 1];
    if (!this.isNew("waves", [this.panel.array, pair, theme, wide.get(this.waves)])) return;
    const xs = Array.from(wave, (_, i) => i), ink = `rgb(${colours.ink.join()})`;
    const lines = [{ name: "wavelength", xs, ys: wave, colour: ink, dots: 2 }];
    this.waves.draw({ x: [0, Math.max(1, n - 1)], y: [1, 1e5], log: true, ticks: { x: [[0, "0"], [n - 1, String(n - 1)]], y: powers(1, 1e5) }, axis: "pair i", lines, mark: { x: pair, y: wave[pair], colour: colours.accent } }, this.panel.value,
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
    const get = (name) => this.panel.array(name).values, xs = Array.from(get("steps"), (_, i) => i);
    const from = 1, line = (name, key, colour) => ({ name, xs: xs.slice(from), ys: get(key).subarray(from), colour: `rgb(${colour.join()})` }); // position 0 is exact
    const lines = [line("every step in float32", "steps", colours.opposite), line("rounded to float32 once", "once", colours.grey), line("Eq. 2.8 in double", "identity", colours.ink)];
    const most = lines.map(({ ys }) => Math.max(...ys));
    this.rounding.draw({ x: [0, xs.length], y: [1e-17, 1e-3], log: true, ticks: { x: [0, 200, 400, 600].map((x) => [x, String(x)]), y: powers(1e-16, 1e-4, 4) }, axis: "position", lines, mark: null }, this.panel.value,
      `Largest errors over ${xs.length} positions: ${lines.map(({ name }, i) => `${name} ${tiny(most[i])}`).join("; ")}.`, colours, wide.get(this.rounding));
    this.panel.tell(this.rounding.note, `Below position ${xs.length}: Eq. 2.8 holds to ${tiny(most[2])} in double (blue). A table rounded once to float32 is off by ${tiny(most[1])} (grey), one with its angles in float32 by ${tiny(most[0])} (orange).`);
  }
}
