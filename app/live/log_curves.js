// Curves on one canvas, y on a logarithmic axis: read by pointer and arrow keys, saved as PNG, SVG or CSV.
// chart: {x: {name, max, min: 0, log}, unit, series: [{name, colour, faint, dash, dots, points: [[x, y]]}], now: x of a mark}
class Curves {
  constructor(parent, title, height, note = "") {
    this.box = make("figure", "picture curves", parent);
    const head = make("figcaption", "", this.box);
    this.title = make("h3", "", head, title);
    menuOf(head, title, { PNG: () => savePng(title, this.canvas), SVG: () => this.saveSvg(title), CSV: () => this.saveCsv(title) });
    this.canvas = make("canvas", "", make("div", "", this.box));
    this.canvas.setAttribute("role", "img");
    this.canvas.tabIndex = 0;
    this.canvas.dataset.keys = "";
    this.legend = make("div", "key", this.box);
    this.readout = make("p", "note quiet", this.box, note);
    this.note = note;
    this.height = height;
    this.cursor = null;
    this.canvas.addEventListener("pointermove", (event) => this.read(this.place.value(event.offsetX)));
    this.canvas.addEventListener("pointerleave", () => this.read(null));
    this.canvas.addEventListener("blur", () => this.read(null));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  draw(chart, value, description, note = this.note) {
    this.chart = chart;
    this.note = this.readout.textContent = note;
    this.cursor = null;
    this.paint();
    this.canvas.dataset.v = value;
    this.canvas.setAttribute("aria-label", description);
    const named = chart.series.filter((one) => one.name).map((one) => `${one.colour} ${one.name}`).join();
    if (named === this.named) return;
    this.named = named;
    this.legend.replaceChildren();
    for (const one of chart.series.filter((one) => one.name)) {
      const entry = make("span", `${one.colour} ${one.dash ? "dashed" : ""} ${one.dots ? "dots" : ""}`, this.legend);
      make("i", "", entry);
      entry.append(one.name);
    }
  }

  paint() {
    const width = this.canvas.parentElement.clientWidth;
    this.place = paintCurves(sharp(this.canvas, width, this.height), width, this.height, this.chart, inks(this.canvas), this.cursor);
  }

  // The nearest point of every series to an x; null reads nothing.
  read(x) {
    this.cursor = x === null ? null : nearest(this.chart.series.flatMap((one) => one.points.map(([px]) => px)), x);
    this.paint();
    if (this.cursor === null) return (this.readout.textContent = this.note);
    const said = this.chart.series.filter((one) => one.name && one.points.length).map((one) => {
      const at = one.points.find(([px]) => px === this.cursor);
      return at && `${one.name} ${short(at[1])}`;
    });
    this.readout.textContent = `${this.chart.x.name} ${this.cursor}: ${said.filter(Boolean).join(", ")}`;
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const all = [...new Set(this.chart.series.flatMap((one) => one.points.map(([x]) => x)))].sort((a, b) => a - b);
    if (!all.length) return;
    const at = this.cursor === null ? (step > 0 ? 0 : all.length - 1) : all.indexOf(this.cursor) + step;
    this.read(all[Math.max(0, Math.min(all.length - 1, at))]);
  }

  saveCsv(title) {
    const rows = this.chart.series.flatMap((one) => one.points.map(([x, y]) => [one.full ?? one.name, x, y]));
    const lines = [["series", this.chart.x.name, this.chart.unit], ...rows].map((cells) => cells.map(quoted).join() + "\n");
    saveAs(title, "csv", new Blob(lines, { type: "text/csv" }));
  }

  saveSvg(title) {
    const width = this.canvas.clientWidth, colours = inks(this.canvas), pen = new SvgPen();
    paintCurves(pen, width, this.height, this.chart, colours, null);
    const paper = `<rect width="100%" height="100%" fill="rgb(${colours.paper.join()})"/>`;
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${this.height}" font-family="sans-serif">${paper}${pen.parts.join("")}</svg>`;
    saveAs(title, "svg", new Blob([svg], { type: "image/svg+xml" }));
  }
}

// Returns {value(pixel)}: the x there.
function paintCurves(pen, width, height, chart, colours, cursor) {
  const left = 48, right = width - 20, top = 8, bottom = height - 38;
  const values = chart.series.flatMap((one) => one.points.map(([, y]) => y)).filter((y) => y > 0);
  const low = Math.min(...values, 1) * 0.8, high = Math.max(...values, low * 10) * 1.2;
  const { min = 0, max, log } = chart.x;
  const share = (x) => (log ? Math.log(x / min) / Math.log(max / min) : max > min ? (x - min) / (max - min) : 0.5);
  const toX = (x) => left + (right - left) * share(x);
  const toY = (y) => bottom - (bottom - top) * Math.log(Math.max(y, low) / low) / Math.log(high / low);
  const line = (points) => {
    pen.beginPath();
    points.forEach(([x, y], i) => (i ? pen.lineTo(x, y) : pen.moveTo(x, y)));
    pen.stroke();
  };
  pen.textBaseline = "middle";
  pen.lineWidth = 1;
  pen.setLineDash([]);
  pen.strokeStyle = colours.line;
  for (const tick of powers(low, high)) {
    line([[left, toY(tick)], [right, toY(tick)]]);
    label(pen, short(tick), left - 6, toY(tick), "right", colours);
  }
  for (const tick of xTicks(chart.x, width)) label(pen, tick.toLocaleString("en"), toX(tick), bottom + 12, "center", colours);
  label(pen, chart.x.name, (left + right) / 2, bottom + 29, "center", colours);
  pen.strokeStyle = colours.accent;
  for (const [x, dash] of [[cursor, []], [chart.x.now ?? null, [3, 3]]]) {
    if (x === null) continue;
    pen.setLineDash(dash);
    line([[toX(x), top], [toX(x), bottom]]);
  }
  for (const { points, colour, faint, dash, dots } of chart.series) {
    pen.strokeStyle = pen.fillStyle = colour === "blue" ? `rgb(${colours.ink.join()})` : `rgb(${colours.opposite.join()})`;
    pen.globalAlpha = faint ? 0.4 : 1;
    pen.lineWidth = faint ? 1.2 : 2.2;
    pen.setLineDash(dash ? [5, 4] : []);
    if (!dots) line(points.map(([x, y]) => [toX(x), toY(y)]));
    pen.setLineDash([]);
    if (!dots && points.length > 1) continue;
    for (const [x, y] of points) {
      pen.beginPath();
      pen.arc(toX(x), toY(y), 3.5, 0, 2 * Math.PI);
      pen.fill();
    }
  }
  pen.globalAlpha = 1;
  return { value: (px) => { const at = Math.min(1, Math.max(0, (px - left) / (right - left))); return log ? min * (max / min) ** at : min + (max - min) * at; } };
}

// Powers of ten, and 2 and 5 between them where they are few.
function powers(low, high) {
  const decades = Math.log10(high / low), every = decades > 6 ? 2 : 1, ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    if (power % every === 0) for (const factor of decades < 2 ? [1, 2, 5] : [1]) ticks.push(factor * 10 ** power);
  }
  return ticks.filter((tick) => tick >= low && tick <= high);
}

function xTicks({ min = 0, max, log, ticks }, width) {
  const all = ticks ?? Array.from({ length: 7 }, (_, i) => i * niceStep(max - min)).map((x) => x + min);
  const inside = all.filter((x) => x >= min && x <= max);
  return width < 340 && !log ? inside.filter((_, i) => i % 2 === 0) : inside;
}

function niceStep(range) {
  const rough = range / 6, power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough);
}

const nearest = (all, x) => all.reduce((best, one) => (Math.abs(one - x) < Math.abs(best - x) ? one : best), all[0]);

// Three digits, whatever the size.
function short(x) {
  if (x === 0 || (Math.abs(x) >= 0.0001 && Math.abs(x) < 10000)) return String(Number(x.toPrecision(3)));
  return x.toExponential(1).replace("e+", "e").replace(".0e", "e");
}
