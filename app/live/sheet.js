// One matrix of signed values as a heatmap whose cells need not be square. Its cells are painted once and kept;
// what is marked on them may move at every frame.
class Sheet {
  // shape: {row: pixels a row, most: the widest cell, square: rows as tall as columns are wide}
  constructor(parent, title, shape, hooks = {}) {
    this.box = make("figure", "picture", parent);
    const head = make("figcaption", "", this.box);
    this.title = make("h3", "", head, title);
    this.shape = shape;
    this.hooks = hooks;
    menuOf(head, title, { PNG: () => savePng(title, this.canvas), SVG: () => saveSheet(title, this), CSV: () => saveCells(title, this.grid) });
    this.canvas = make("canvas", "", make("div", "", this.box));
    this.canvas.setAttribute("role", "img");
    this.canvas.tabIndex = 0;
    this.canvas.dataset.keys = "";
    this.note = make("p", "note quiet", this.box);
    this.canvas.addEventListener("pointermove", (event) => this.point(this.under(event)));
    this.canvas.addEventListener("pointerleave", () => this.point(null));
    this.canvas.addEventListener("click", (event) => this.pick(this.under(event)));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("blur", () => this.point(null));
  }

  // grid: {values, rows, columns: labels, every: [row, column] label each so many, most: largest magnitude,
  //        axes: [down, across], marks: [{row, column, span, colour, fine, under}], a whole row, whole columns or a cell framed, or a row underlined}
  draw(grid, value, description, colours = inks(this.canvas), width = this.canvas.parentElement.clientWidth) {
    this.grid = grid;
    const rows = grid.rows.length, columns = grid.columns.length;
    const left = grid.wide ?? 26, top = 17, right = 1;
    const x = Math.min(this.shape.most, (width - left - right) / Math.max(1, columns)), y = this.shape.square ? x : this.shape.row;
    this.place = { left, top, x, y };
    const pen = sharp(this.canvas, width, top + rows * y + 2);
    this.paint(colours);
    pen.imageSmoothingEnabled = false;
    if (rows && columns) pen.drawImage(this.cells, left, top, columns * x, rows * y);
    pen.strokeStyle = colours.line;
    pen.lineWidth = 1;
    pen.strokeRect(left - 0.5, top - 0.5, columns * x + 1, rows * y + 1);
    pen.textBaseline = "middle";
    const [everyRow, everyColumn] = grid.every;
    const rowSize = Math.min(12, Math.max(9, everyRow * y));
    for (let r = 0; r < rows; r += everyRow) label(pen, grid.rows[r], left - 5, top + (r + 0.5) * y, "right", colours, { size: rowSize });
    for (let c = 0; c < columns; c += everyColumn) label(pen, grid.columns[c], left + (c + 0.5) * x, 8, "center", colours, { size: 11 });
    for (const mark of [...(grid.marks ?? []), ...(this.cursor ? [{ ...this.cursor, colour: colours.accent }] : [])]) this.frame(pen, mark, rows, columns);
    this.canvas.dataset.v = value;
    this.canvas.setAttribute("aria-label", description);
  }

  // Painted anew only for other values, another scale or another theme.
  paint(colours) {
    const { values, rows, columns, most } = this.grid, theme = `${colours.paper} ${colours.ink} ${most}`;
    if (this.painted?.values === values && this.painted.theme === theme) return;
    this.painted = { values, theme };
    this.cells ??= document.createElement("canvas");
    Object.assign(this.cells, { width: Math.max(1, columns.length), height: Math.max(1, rows.length) });
    const pen = this.cells.getContext("2d"), wide = columns.length;
    paintCells(pen, rows.length, wide, (r, c) => signed(colours, values[r * wide + c] / (most || 1)), 0, 0, wide, rows.length);
  }

  frame(pen, { row, column, span = 1, colour, fine, under }, rows, columns) {
    const { left, top, x, y } = this.place;
    if (row < 0 || row >= rows || column < 0 || column >= columns) return;
    const across = column === undefined ? [left, columns * x] : [left + column * x, span * x];
    const down = row === undefined ? [top, rows * y] : [top + row * y, y];
    pen.strokeStyle = colour;
    pen.lineWidth = fine ? 1 : 2;
    if (under) return stroke(pen, [[left - 4, down[0] + y], [left + columns * x + 4, down[0] + y]]);
    pen.strokeRect(across[0] - 1, down[0] - 1, across[1] + 2, down[1] + 2);
  }

  under(event) {
    const box = this.canvas.getBoundingClientRect(), { left, top, x, y } = this.place;
    const column = Math.floor((event.clientX - box.left - left) / x), row = Math.floor((event.clientY - box.top - top) / y);
    return this.has(row, column) ? { row, column } : null;
  }

  has(row, column) {
    return row >= 0 && row < this.grid.rows.length && column >= 0 && column < this.grid.columns.length;
  }

  point(cell) {
    if (this.cursor && !cell) {
      this.cursor = null;
      this.draw(this.grid, this.canvas.dataset.v, this.canvas.getAttribute("aria-label"));
    }
    const value = cell && this.grid.values[cell.row * this.grid.columns.length + cell.column];
    this.hooks.read?.(cell ? `${this.grid.axes[0]} ${this.grid.rows[cell.row]}, ${this.grid.axes[1]} ${this.grid.columns[cell.column]}: ${value.toFixed(3)}` : "");
  }

  pick(cell) {
    if (cell) this.hooks.pick?.(cell);
  }

  // Arrow keys walk from cell to cell; Enter picks.
  key(event) {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (event.key === "Enter") this.pick(this.cursor);
    if (!step) return;
    event.preventDefault();
    const next = this.cursor ? { row: this.cursor.row + step[0], column: this.cursor.column + step[1] } : { row: 0, column: 0 };
    if (!this.has(next.row, next.column)) return;
    this.cursor = next;
    this.draw(this.grid, this.canvas.dataset.v, this.canvas.getAttribute("aria-label"));
    this.point(next);
  }
}

function saveCells(name, { values, rows, columns, axes }) {
  const quoted = (text) => `"${String(text).replaceAll('"', '""')}"`;
  const lines = [[...axes.map(quoted), "value"].join()];
  rows.forEach((row, r) => columns.forEach((column, c) => lines.push([quoted(row), quoted(column), values[r * columns.length + c]].join())));
  saveAs(name, "csv", new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
}

function saveSheet(name, { grid, place, canvas }) {
  const { left, top, x, y } = place, colours = inks(canvas), parts = [];
  const escape = (text) => String(text).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  const text = (at, down, words, anchor) => parts.push(`<text x="${at}" y="${down}" font-size="11" text-anchor="${anchor}" fill="${colours.text}">${escape(words)}</text>`);
  grid.rows.forEach((row, r) => {
    if (r % grid.every[0] === 0) text(left - 5, top + (r + 0.5) * y + 4, row, "end");
    grid.columns.forEach((column, c) => {
      const value = grid.values[r * grid.columns.length + c];
      parts.push(`<rect x="${left + c * x}" y="${top + r * y}" width="${x}" height="${y}" fill="rgb(${signed(colours, value / (grid.most || 1)).map(Math.round).join()})"><title>${value}</title></rect>`);
    });
  });
  grid.columns.forEach((column, c) => c % grid.every[1] === 0 && text(left + (c + 0.5) * x, 12, column, "middle"));
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${canvas.clientWidth}" height="${canvas.clientHeight}" font-family="sans-serif"><rect width="100%" height="100%" fill="rgb(${colours.paper.join()})"/>${parts.join("")}</svg>`;
  saveAs(name, "svg", new Blob([svg], { type: "image/svg+xml" }));
}

// Numbers are their own labels.
const countTo = (n, from = 0) => Array.from({ length: n }, (_, i) => String(from + i));

// What is tiny is told by its power of ten.
function tiny(x) {
  if (x === 0 || x >= 0.0995) return x === 0 ? "0" : x.toFixed(3);
  const [digits, power] = x.toExponential(1).split("e");
  return `${digits}·10${raised(Number(power))}`;
}

const minus = (number) => String(number).replace("-", "−");

// Three digits after the point with a true minus, as wide as its positive twin.
function threeDigits(x) {
  const text = Math.abs(x).toFixed(3);
  return x < 0 && Number(text) !== 0 ? `−${text}` : ` ${text}`;
}
