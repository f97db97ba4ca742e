// Curves and points over two axes, each linear or by powers: read by pointer and arrow keys, or scrubbed.
// chart: {x, y: {name, min, max, log, ticks: [[number, text]], bare: no name drawn}, series, now: {x, y, text}, right: room there}
// series: [{name, full: name in a file, colour, wide, faint, dash, dots: radius, bars, label, labelAt: share of the line, points: [[x, y, low, high]]}]
// hooks: {scrub(x, settled): the pointer picks an x, key(event): keys mean something else, legend: draw one}
class Chart extends Figure {
  constructor(parent, title, height, note = "", hooks = {}) {
    super(parent, title, height, note);
    this.box.classList.add("curves");
    if (hooks.legend) this.legend = make("div", "key", this.box);
    if (hooks.legend) this.box.append(this.note);
    this.cursor = null;
    const { canvas } = this, at = (event) => this.scale.value(event.offsetX);
    if (hooks.key || !hooks.scrub) {
      Object.assign(canvas, { tabIndex: 0 }).dataset.keys = "";
      canvas.addEventListener("keydown", hooks.key ?? ((event) => this.key(event)));
    }
    canvas.addEventListener("pointermove", (event) => (hooks.scrub && event.buttons ? hooks.scrub(at(event), false) : this.read(at(event), event.offsetY)));
    for (const name of ["pointerleave", "blur"]) canvas.addEventListener(name, () => this.read(null));
    if (!hooks.scrub) return;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      hooks.scrub(at(event), false);
    });
    canvas.addEventListener("pointerup", (event) => hooks.scrub(at(event), true));
  }

  show(chart, value, description, colours, width) {
    this.chart = this.legend ? { ...chart, series: chart.series.map((one) => ({ wide: 2.2, ...one })) } : chart;
    this.forget();
    const rows = chart.rows ?? (() => [["series", chart.x.name, chart.y.name], ...chart.series.flatMap(({ full, name, points }) => points.filter(([, y]) => Number.isFinite(y)).map(([x, y]) => [full ?? name, x, y]))]);
    this.draw((pen, wide, height, inks) => (this.scale = paintChart(pen, wide, height, this.chart, inks, this.cursor)), rows, value, description, colours, width);
    if (this.legend) this.lay(chart.series.filter(({ name }) => name));
  }

  lay(series) {
    const named = series.map((one) => `${one.colour} ${one.name}`).join();
    if (named === this.named) return;
    this.named = named;
    this.legend.replaceChildren();
    for (const { name, colour, dash, dots } of series) {
      const entry = make("span", `${colour} ${dash ? "dashed" : ""} ${dots ? "dots" : ""}`, this.legend);
      make("i", "", entry);
      entry.append(name);
    }
  }

  // What stands at the nearest x, in place of the note; of many series the three nearest to the pointer.
  read(x, py = null) {
    const xs = x === null || !this.chart ? [] : this.chart.series.flatMap(({ points }) => points.map((point) => point[0]));
    if (!xs.length && this.cursor === null) return;
    const told = this.forget();
    if (xs.length) {
      const { toY } = this.scale, at = (this.cursor = xs.reduce((best, one) => (Math.abs(one - x) < Math.abs(best - x) ? one : best), xs[0]));
      let found = this.chart.series.map(({ name, points }) => ({ name, y: points.find((point) => point[0] === at)?.[1] })).filter(({ name, y }) => name && Number.isFinite(y));
      if (found.length > 6) found = found.sort((a, b) => (py === null ? b.y - a.y : Math.abs(toY(a.y) - py) - Math.abs(toY(b.y) - py))).slice(0, 3);
      this.told = told;
      this.note.textContent = this.reading = `${this.chart.x.name} ${at}: ${found.map(({ name, y }) => `${name} ${short(y)}`).join(", ")}`;
    }
    const { clientWidth } = this.canvas.parentElement;
    this.paint(sharp(this.canvas, clientWidth, this.height), clientWidth, this.height, inks(this.canvas));
  }

  // The note stands again, unless it has been written anew meanwhile.
  forget() {
    if (this.cursor !== null && this.note.textContent === this.reading) this.note.textContent = this.told;
    this.cursor = null;
    return this.note.textContent;
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key], xs = [...new Set(this.chart.series.flatMap(({ points }) => points.map(([x]) => x)))].sort((a, b) => a - b);
    if (!step || !xs.length) return;
    event.preventDefault();
    const at = this.cursor === null ? (step > 0 ? 0 : xs.length - 1) : xs.indexOf(this.cursor) + step;
    this.read(xs[Math.max(0, Math.min(xs.length - 1, at))]);
  }
}

// Draws with either pen; returns {value(pixel): the x there, toY(y): its pixel}.
function paintChart(pen, width, height, { x, y, series, now, right = 14 }, colours, cursor) {
  const left = 46, end = width - right, top = 8, bottom = height - (x.bare ? 18 : 36), size = height > 200 && width > 300 ? 12 : 11;
  const scale = ({ min, max, log }, from, to) => {
    const of = log ? Math.log : Number, low = of(min), span = of(max) - low;
    return (value) => from + (to - from) * (span > 0 ? Math.min(1, Math.max(0, (of(value) - low) / span)) : 0.5);
  };
  const toX = scale(x, left, end), toY = scale(y, bottom, top), inkOf = (name) => ({ blue: `rgb(${colours.ink.join()})`, orange: `rgb(${colours.opposite.join()})` })[name] ?? name;
  const draws = ([, value]) => Number.isFinite(value) && !(y.log && value <= 0);
  pen.textBaseline = "middle";
  pen.setLineDash([]);
  Object.assign(pen, { lineWidth: 1, strokeStyle: colours.line, globalAlpha: 1 });
  for (const [value, text] of ticksOf(y, bottom - top, 24)) {
    stroke(pen, [[left, toY(value)], [end, toY(value)]]);
    label(pen, text, left - 6, toY(value), "right", colours, { size });
  }
  // Every second label, or fewer, where they would run into each other or into the current one's; none leaves the picture.
  const half = (text) => text.length * size * 0.28, apart = ([a, text], [b, other]) => Math.abs(toX(a) - toX(b)) > half(text) + half(other) + 7;
  const ticks = ticksOf(x, end - left, 90), thinned = (every) => ticks.filter((_, i) => i % every === 0);
  const every = [1, 2, 3, 4].find((each) => thinned(each).every((tick, i, all) => i === 0 || apart(tick, all[i - 1]))) ?? 6;
  for (const [value, text] of thinned(every).filter((tick) => !now?.text || apart(tick, [now.x, now.text]))) {
    label(pen, text, Math.min(width - half(text), toX(value)), bottom + 11, "center", colours, { size });
  }
  if (!x.bare) label(pen, x.name, (left + end) / 2, bottom + 28, "center", colours, { size });
  if (now?.text) label(pen, now.text, toX(now.x), bottom + 11, "center", colours, { size, strong: true, opacity: 1 });

  for (const { points, colour, wide = 1.6, faint, dash, dots, bars } of series) {
    const drawn = points.filter(draws), ink = inkOf(colour);
    Object.assign(pen, { strokeStyle: ink, fillStyle: ink, lineWidth: faint ? 1.2 : wide, globalAlpha: faint ? 0.4 : 1, lineJoin: "round" });
    pen.setLineDash(dash ?? []);
    if (!dots && drawn.length > 1) stroke(pen, drawn.map(([px, py]) => [toX(px), toY(py)]));
    pen.setLineDash([]);
    pen.lineWidth = 1;
    if (bars) for (const [px, , low, high] of points) if (high > y.min) stroke(pen, [[toX(px), toY(low)], [toX(px), toY(high)]]);
    if (dots || drawn.length === 1) for (const [px, py] of drawn) if (py >= y.min) disc(pen, toX(px), toY(py), dots ?? 3.5);
  }
  pen.globalAlpha = 1;
  for (const { points, colour, label: text, labelAt, strong } of series) {
    const drawn = text ? points.filter(draws) : [], last = drawn[Math.floor((drawn.length - 1) * (labelAt ?? 1))];
    if (!last) continue;
    const down = labelAt === undefined ? 0 : toY(last[1]) < top + 40 ? 11 : -9;
    Object.assign(pen, { font: `${strong ? "600 " : ""}${size}px ${colours.font}`, textAlign: "left", fillStyle: inkOf(colour) });
    pen.fillText(text, toX(last[0]) + (labelAt === undefined ? 4 : 8), toY(last[1]) + down);
  }
  Object.assign(pen, { strokeStyle: colours.accent, fillStyle: colours.accent, lineWidth: 1.3 });
  for (const [at, dash] of [[now?.x, []], [cursor, [3, 3]]]) {
    if (at === undefined || at === null) continue;
    pen.setLineDash(dash);
    stroke(pen, [[toX(at), top], [toX(at), bottom]]);
  }
  pen.setLineDash([]);
  if (now?.y !== undefined) disc(pen, toX(now.x), toY(now.y), 4.5);
  const value = (px) => {
    const share = Math.min(1, Math.max(0, (px - left) / (end - left)));
    return x.log ? x.min * (x.max / x.min) ** share : x.min + (x.max - x.min) * share;
  };
  return { value, toY };
}

// As many as there is room for, one in so many pixels: powers of ten, with 2 and 5 between few of them; else round steps.
function ticksOf({ min, max, log, ticks }, pixels, each) {
  if (ticks) return ticks;
  const found = [];
  if (log) {
    const decades = Math.log10(max / min), plain = min >= 0.0003 && max < 20000, every = Math.max(1, Math.ceil((decades * each) / pixels));
    for (let power = Math.floor(Math.log10(min)); power <= Math.log10(max) + 1e-9; power++) {
      if (power % every === 0) for (const factor of decades < 2 ? [1, 2, 5] : [1]) found.push([factor * 10 ** power, plain || power === 0 ? short(factor * 10 ** power) : `${factor > 1 ? `${factor}·` : ""}10${raised(power)}`]);
    }
  } else {
    const rough = ((max - min) * each) / pixels || 1, power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough * 0.999);
    for (let tick = Math.ceil(min / step) * step; tick <= max + step * 1e-6; tick += step) found.push([tick, tick >= 1000 ? Math.round(tick).toLocaleString("en") : short(Number(tick.toPrecision(6)))]);
  }
  return found.filter(([tick]) => tick >= min * 0.999 && tick <= max * 1.001);
}

// Limits by powers for what is drawn, to a fifth of a decade, so that they rest while a curve grows.
function decadesOf(series) {
  const values = series.flatMap(({ points }) => points.map((point) => point[1])).filter((y) => y > 0 && Number.isFinite(y));
  if (!values.length) return { min: 0.1, max: 1, log: true };
  const [low, high] = values.reduce(([low, high], y) => [Math.min(low, y), Math.max(high, y)], [Infinity, 0]);
  return { min: 10 ** (Math.floor(Math.log10(low) * 5) / 5), max: 10 ** (Math.ceil(Math.log10(high) * 5 + 1e-9) / 5), log: true };
}

// Three digits, whatever the size.
function short(x) {
  if (x === 0 || (Math.abs(x) >= 0.0001 && Math.abs(x) < 10000)) return String(Number(x.toPrecision(3)));
  return x.toExponential(1).replace("e+", "e").replace(".0e", "e");
}
