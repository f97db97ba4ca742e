// Curves over training steps on one canvas, drawn once for the screen and once more, from the same places, as SVG.
// chart: {lines: [{name, x, y, colour, dash, wide}], last: largest x, log, low, high, at: step marked or -1, unit, value}

function ticksOf(low, high, log) {
  if (log) {
    const powers = [];
    for (let power = Math.ceil(Math.log10(low) - 1e-9); power <= Math.log10(high) + 1e-9; power++) powers.push(10 ** power);
    return powers.length < 5 ? powers : powers.filter((_, i) => (powers.length - 1 - i) % Math.ceil(powers.length / 4) === 0);
  }
  const rough = (high - low) / 3 || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * power).find((each) => each >= rough * 0.999);
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-6; tick += step) ticks.push(tick);
  return ticks;
}

const short = (x) => (x === 0 ? "0" : Math.abs(x) >= 0.01 && Math.abs(x) < 10000 ? String(Number(x.toPrecision(3))) : x.toExponential(0).replace("e+", "e"));

class Curves {
  constructor(parent, title, note, hooks) {
    this.box = make("figure", "curves", parent);
    const head = make("figcaption", "", this.box);
    this.title = make("h3", "", head, title);
    this.name = title;
    menuOf(head, title, { PNG: () => savePng(title, this.canvas), SVG: () => this.saveSvg(), CSV: () => this.saveCsv() });
    this.canvas = make("canvas", "", make("div", "", this.box));
    this.canvas.setAttribute("role", "img");
    this.note = make("p", "note quiet", this.box, note);
    const toStep = (event, settled) => {
      const { left, width } = this.place, x = event.clientX - this.canvas.getBoundingClientRect().left;
      hooks.scrub(Math.round(Math.max(0, Math.min(1, (x - left) / width)) * this.chart.last), settled);
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      toStep(event, false);
    });
    this.canvas.addEventListener("pointermove", (event) => event.buttons && toStep(event, false));
    this.canvas.addEventListener("pointerup", (event) => toStep(event, true));
  }

  // The chart's own limits where it has none given, and all points in CSS pixels.
  layOut(width, height) {
    const { lines, last, log } = this.chart;
    let { low, high } = this.chart;
    if (low === undefined) {
      low = Infinity;
      high = -Infinity;
      for (const { y } of lines) for (const each of y) {
        if (!Number.isFinite(each) || (log && each <= 0)) continue;
        low = Math.min(low, each);
        high = Math.max(high, each);
      }
      if (low > high) [low, high] = [log ? 0.1 : 0, 1];
      if (log) [low, high] = [10 ** (Math.floor(Math.log10(low) * 2) / 2), 10 ** (Math.ceil(Math.log10(high) * 2 + 1e-9) / 2)];
    }
    const scale = log ? (y) => Math.log10(y) : (y) => y, span = scale(high) - scale(low) || 1;
    const left = 44, right = 30, top = 6, bottom = 18;
    this.place = { left, width: width - left - right, top, height: height - top - bottom };
    const at = (x) => left + (this.place.width * x) / (last || 1);
    const to = (y) => top + this.place.height * (1 - (scale(y) - scale(low)) / span);
    const paths = lines.map((line) => {
      const points = [];
      for (let i = 0; i < line.x.length; i++) {
        if (Number.isFinite(line.y[i]) && !(log && line.y[i] <= 0)) points.push([at(line.x[i]), to(Math.max(low, Math.min(high, line.y[i])))]);
      }
      return { ...line, points };
    });
    return { paths, at, to, ticks: ticksOf(low, high, log).map((tick) => [to(tick), short(tick)]), width, height };
  }

  draw(chart, description) {
    this.chart = chart;
    const width = this.box.clientWidth, height = 128, pen = sharp(this.canvas, width, height), colours = inks(this.canvas);
    const { paths, at, ticks } = (this.drawn = this.layOut(width, height)), { left, top, height: inner, width: across } = this.place;
    pen.font = `11px ${colours.font}`;
    pen.lineWidth = 1;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    for (const [y, text] of ticks) {
      pen.strokeStyle = colours.line;
      pen.beginPath();
      pen.moveTo(left, Math.round(y) + 0.5);
      pen.lineTo(left + across, Math.round(y) + 0.5);
      pen.stroke();
      pen.fillStyle = colours.text;
      pen.fillText(text, left - 6, y);
    }
    pen.textBaseline = "alphabetic";
    pen.textAlign = "left";
    pen.fillText("0", left, height - 4);
    pen.textAlign = "right";
    pen.fillText(`${chart.last.toLocaleString("en")} steps`, left + across, height - 4);
    for (const { points, colour, dash, wide, label } of paths) {
      if (!points.length) continue;
      pen.strokeStyle = colour;
      pen.lineWidth = wide ?? 1.5;
      pen.setLineDash(dash ?? []);
      pen.lineJoin = "round";
      pen.beginPath();
      points.forEach(([x, y]) => pen.lineTo(x, y));
      pen.stroke();
      if (!label) continue;
      pen.fillStyle = colour;
      pen.textAlign = "left";
      pen.fillText(label, points.at(-1)[0] + 4, points.at(-1)[1] + 4);
    }
    pen.setLineDash([]);
    if (chart.at >= 0) {
      pen.strokeStyle = colours.accent;
      pen.lineWidth = 1.5;
      pen.beginPath();
      pen.moveTo(at(chart.at), top);
      pen.lineTo(at(chart.at), top + inner);
      pen.stroke();
    }
    this.canvas.dataset.v = chart.at;
    this.canvas.setAttribute("aria-label", `${this.name}. ${description}`);
  }

  saveCsv() {
    const lines = ["line,step,value"];
    for (const { name, x, y } of this.chart.lines) {
      for (let i = 0; i < x.length; i++) if (Number.isFinite(y[i])) lines.push([quoted(name), x[i], y[i]].join());
    }
    saveAs(this.name, "csv", new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
  }

  saveSvg() {
    const { paths, ticks, width, height } = this.drawn, { left, width: across } = this.place, colours = inks(this.canvas);
    const escape = (text) => String(text).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
    const text = (x, y, words, anchor, colour) => `<text x="${x}" y="${y}" font-size="11" text-anchor="${anchor}" fill="${colour}">${escape(words)}</text>`;
    const parts = ticks.map(([y, words]) => `<path d="M${left} ${y}h${across}" stroke="${colours.line}"/>${text(left - 6, y + 4, words, "end", colours.text)}`);
    for (const { points, colour, dash, wide, name, label } of paths) {
      if (!points.length) continue;
      const line = points.map(([x, y]) => `${x.toFixed(2)},${y.toFixed(2)}`).join(" ");
      parts.push(`<polyline points="${line}" fill="none" stroke="${colour}" stroke-width="${wide ?? 1.5}" stroke-dasharray="${(dash ?? []).join()}"><title>${escape(name)}</title></polyline>`);
      if (label) parts.push(text(points.at(-1)[0] + 4, points.at(-1)[1] + 4, label, "start", colour));
    }
    parts.push(text(left, height - 4, "0", "start", colours.text), text(left + across, height - 4, `${this.chart.last} steps`, "end", colours.text));
    const paper = `<rect width="100%" height="100%" fill="rgb(${colours.paper.join()})"/>`;
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="sans-serif">${paper}${parts.join("")}</svg>`;
    saveAs(this.name, "svg", new Blob([svg], { type: "image/svg+xml" }));
  }
}
