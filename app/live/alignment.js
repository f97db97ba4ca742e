// Weights as lines between two rows of tokens, as thick as they are heavy: what is read above, what looks at it below;
// side by side where a window is too narrow for that.
const LEAST_LINE = 0.02; // thinner than a fifth of a pixel
const THICKEST = 8;

class Alignment {
  constructor(parent, title, hooks) {
    this.figure = new Figure(parent, title, 100);
    this.hooks = hooks;
    this.focus = null; // the token that the pointer or the keys are on: {above, at}
    const { canvas } = this.figure;
    canvas.tabIndex = 0;
    canvas.dataset.keys = "";
    canvas.addEventListener("pointermove", (event) => this.turn(this.under(event)));
    canvas.addEventListener("pointerleave", () => this.turn(null));
    canvas.addEventListener("blur", () => this.turn(null));
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  // lines: {name, rows, columns, values: row by row, shown: rows drawn, current: row in the accent or -1}
  draw(lines, value) {
    this.lines = lines;
    this.value = value;
    if (this.focus && this.focus.at >= (this.focus.above ? lines.columns.length : lines.shown)) this.focus = null;
    this.paint();
    if (this.focus) this.read();
  }

  paint() {
    const { figure, lines, focus } = this, { canvas } = figure;
    this.place = placeTokens(canvas.getContext("2d"), canvas.parentElement.clientWidth, lines, inks(canvas).font);
    figure.height = this.place.height;
    figure.draw((pen, width, height, colours) => paintLines(pen, this.place, lines, focus, colours), () => this.table(), this.value, this.describe());
  }

  weight(row, column) {
    return this.lines.values[row * this.lines.columns.length + column];
  }

  table() {
    const { rows, columns, shown } = this.lines;
    return [["row", "row_label", "column", "column_label", "weight"],
      ...rows.slice(0, shown).flatMap((row, r) => columns.map((column, c) => [r + 1, row, c + 1, column, this.weight(r, c)]))];
  }

  describe() {
    const { name, rows, columns, shown } = this.lines;
    if (!columns.length) return `${name}: no source token.`;
    const most = rows.slice(0, shown).map((row, r) => {
      const at = columns.reduce((best, _, c) => (this.weight(r, c) > this.weight(r, best) ? c : best), 0);
      return `${row} most at ${columns[at]}, ${digits(this.weight(r, at))}`;
    });
    return `${name}, as lines: ${most.join("; ")}.`;
  }

  under(event) {
    const box = this.figure.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    for (const above of [true, false]) {
      const at = this.place[above ? "columns" : "rows"].findIndex((token) => Math.abs(token.x - x) <= token.width / 2 + 6 && Math.abs(token.y - y) <= 13);
      if (at >= 0 && (above || at < this.lines.shown)) return { above, at };
    }
    return null;
  }

  turn(focus) {
    if (JSON.stringify(focus) === JSON.stringify(this.focus)) return;
    this.focus = focus;
    this.paint();
    this.read();
  }

  read() {
    if (!this.focus) return this.hooks.read("");
    const { above, at } = this.focus, { rows, columns, shown } = this.lines;
    const others = above ? rows.slice(0, shown) : columns;
    const ranked = others.map((label, i) => [label, above ? this.weight(i, at) : this.weight(at, i)]).sort((a, b) => b[1] - a[1]);
    this.hooks.read(`${above ? columns[at] : rows[at]} ${above ? "is looked at by" : "looks at"} ${ranked.slice(0, 4).map(([label, weight]) => `${label} ${digits(weight)}`).join(", ")}`);
  }

  // Left and right walk along a sentence, up and down change to the other.
  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: 0, ArrowDown: 0 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const above = event.key === "ArrowUp" || (event.key !== "ArrowDown" && (this.focus?.above ?? true));
    const n = above ? this.lines.columns.length : this.lines.shown;
    if (n) this.turn({ above, at: this.focus ? Math.max(0, Math.min(n - 1, this.focus.at + step)) : 0 });
  }
}

// Where each token's middle stands: [{x, y, width}] for columns and rows.
function placeTokens(pen, width, { rows, columns }, font) {
  pen.font = `15px ${font}`;
  const wide = (labels) => labels.map((label) => Math.ceil(pen.measureText(label).width));
  const above = wide(columns), below = wide(rows);
  const length = (widths, gap) => widths.reduce((sum, each) => sum + each + gap, -gap);
  const most = (gap) => Math.max(length(above, gap), length(below, gap));
  if (most(14) <= width - 8) {
    // Both sentences are as long as the longer one, as far apart as there is room.
    const all = Math.min(width - 8, most(40));
    const along = (widths, y) => {
      const gap = widths.length > 1 ? (all - length(widths, 0)) / (widths.length - 1) : 0;
      let x = 4;
      return widths.map((each) => {
        x += each + gap;
        return { x: x - gap - each / 2, y, width: each };
      });
    };
    return { columns: along(above, 14), rows: along(below, 158), height: 174, upright: true };
  }
  const left = Math.min(width * 0.45, Math.max(0, ...above)) + 4, right = width - Math.min(width * 0.45, Math.max(0, ...below)) - 4;
  const down = (widths, x, side) => widths.map((each, i) => ({ x: x + (side * each) / 2, y: 14 + i * 24, width: each }));
  return { columns: down(above, left, -1), rows: down(below, Math.max(left + 60, right - (right - left) * 0.3), 1), height: 4 + 24 * Math.max(rows.length, columns.length), upright: false };
}

function paintLines(pen, place, { rows, columns, values, shown, current }, focus, colours) {
  pen.textBaseline = "middle";
  pen.setLineDash([]);
  const ink = `rgb(${colours.ink.join()})`;
  const strong = (row, column) => (focus ? (focus.above ? focus.at === column : focus.at === row) : row === current);
  // What is in focus is drawn last, on top.
  for (const front of [false, true]) {
    for (let row = 0; row < shown; row++) {
      for (let column = 0; column < columns.length; column++) {
        const weight = values[row * columns.length + column];
        if (weight < LEAST_LINE || strong(row, column) !== front) continue;
        Object.assign(pen, { strokeStyle: front ? colours.accent : ink, lineWidth: THICKEST * weight, globalAlpha: front ? 0.9 : focus ? 0.12 : 0.25 + 0.45 * weight });
        strand(pen, place.columns[column], place.rows[row], place.upright);
      }
    }
  }
  pen.globalAlpha = 1;
  const name = (label, token, on, opacity) => {
    pen.font = `${on ? "600 " : ""}15px ${colours.font}`;
    Object.assign(pen, { textAlign: "center", fillStyle: on ? colours.accent : colours.text, globalAlpha: opacity });
    pen.fillText(label, token.x, token.y);
  };
  columns.forEach((label, i) => name(label, place.columns[i], focus?.above && focus.at === i, 1));
  rows.forEach((label, i) => {
    const on = focus ? !focus.above && focus.at === i : i === current;
    name(i < shown ? label : "·", place.rows[i], on, i < shown ? 1 : 0.5);
  });
  pen.globalAlpha = 1;
}

// From a token read to one that looks at it.
function strand(pen, from, to, upright) {
  const [x0, y0, x1, y1] = upright ? [from.x, from.y + 13, to.x, to.y - 13] : [from.x + from.width / 2 + 6, from.y, to.x - to.width / 2 - 6, to.y];
  const bend = upright ? [0, (y1 - y0) / 2] : [(x1 - x0) / 2, 0];
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.bezierCurveTo(x0 + bend[0], y0 + bend[1], x1 - bend[0], y1 - bend[1], x1, y1);
  pen.stroke();
}
