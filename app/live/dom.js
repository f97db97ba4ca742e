function make(tag, className, parent, text = "") {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text) element.textContent = text;
  parent.append(element);
  return element;
}

// Pictures change their own height; only another width calls for a new drawing.
function onNewWidth(box, draw) {
  let width = box.clientWidth;
  const observer = new ResizeObserver(() => {
    if (box.clientWidth === width) return;
    width = box.clientWidth;
    draw();
  });
  observer.observe(box);
  return observer;
}

// A held range hears of the pointer at once, where a browser tells (elsewhere once a frame, as ever): what follows is
// then drawn by the time that the frame begins. Its thumb's middle is under the pointer, 16 pixels wide in all browsers
// that tell; should it be elsewhere, the browser's own "input" puts it right in the same frame.
function hearAtOnce(thumb) {
  thumb.addEventListener("pointerrawupdate", (event) => {
    if (!(event.buttons & 1)) return;
    const { left, width } = thumb.getBoundingClientRect(), [min, max, step] = [thumb.min, thumb.max, thumb.step].map(Number);
    const share = Math.min(1, Math.max(0, (event.clientX - left - 8) / (width - 16)));
    const value = min + Math.round((share * (max - min)) / step) * step;
    if (value === Number(thumb.value)) return;
    thumb.value = value;
    thumb.dispatchEvent(new Event("input"));
  });
}

// Keys that mean something where the focus is are left alone; [data-keys] marks a picture that reads its own.
function keysAreTaken(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return true;
  const own = 'input, textarea, select, [contenteditable="true"], [role="slider"], [role="listbox"], [role="combobox"], [data-keys]';
  return Boolean(event.composedPath()[0].closest?.(own));
}

// A heatmap's canvas with its title, readout by pointer and by keys, and its save menu.
class Picture {
  constructor(parent, title, note, mostCell, hooks = {}) {
    this.box = make("figure", "picture", parent);
    const head = make("figcaption", "", this.box);
    this.title = make("h3", "", head, title);
    this.name = title;
    saveMenu(head, this.title, () => this.canvas, () => this.grid);
    this.canvas = make("canvas", "", make("div", "", this.box));
    this.canvas.setAttribute("role", "img");
    this.canvas.tabIndex = 0;
    this.canvas.dataset.keys = "";
    this.note = make("p", "note quiet", this.box, note);
    this.mostCell = mostCell;
    this.hooks = hooks;
    this.cursor = null;
    this.canvas.addEventListener("pointermove", (event) => this.read(this.under(event)));
    this.canvas.addEventListener("pointerleave", () => this.read(null));
    this.canvas.addEventListener("click", (event) => this.pick(this.under(event)));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("blur", () => this.move(null));
  }

  draw(grid, value, description) {
    this.grid = grid;
    this.colours = inks(this.canvas);
    drawGrid(this.canvas, grid, this.mostCell, this.colours);
    this.drawn(value, description);
  }

  // The same grid at another row: only rows between the two have changed.
  follow(shown, current, value) {
    const rows = [this.grid.shown, this.grid.current, shown, current];
    Object.assign(this.grid, { shown, current });
    const span = { from: Math.max(0, Math.min(...rows)), to: Math.min(this.grid.rows.length, Math.max(...rows) + 1) };
    redrawRows(this.canvas, this.grid, this.colours, span);
    this.drawn(value, describeGrid(this.grid));
  }

  drawn(value, description) {
    this.canvas.dataset.v = value;
    this.canvas.setAttribute("aria-label", description);
    if (this.cursor) this.move(this.cursor);
  }

  under(event) {
    const box = this.canvas.getBoundingClientRect();
    return cellAt(this.grid, event.clientX - box.left, event.clientY - box.top);
  }

  read(cell) {
    if (!this.hooks.read) return;
    if (!cell || cell.row >= this.grid.shown) return this.hooks.read("");
    const { rows, columns, hidden, bare, most } = this.grid;
    const where = bare ? "" : `layer ${cell.layer + 1}, head ${cell.head + 1}: `;
    const number = most === undefined ? digits(cell.weight) : cell.weight.toFixed(3);
    const weight = hidden?.(cell.layer, cell.head, cell.row, cell.column) ? "masked" : number;
    this.hooks.read(`${where}${rows[cell.row]} (row ${cell.row + 1}) to ${columns[cell.column]} (column ${cell.column + 1}): ${weight}`);
  }

  pick(cell) {
    if (cell && this.hooks.pick) this.hooks.pick(cell);
  }

  // Arrow keys walk from cell to cell, over into the next tile; Enter picks.
  key(event) {
    const [layers, heads, rows, columns] = this.grid.weights.shape;
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (event.key === "Enter" && this.cursor) this.pick(this.cursor);
    if (!step || !columns || !rows) return;
    event.preventDefault();
    const at = this.cursor ?? { layer: 0, head: 0, row: 0, column: 0 };
    const down = Math.min(layers * rows - 1, Math.max(0, at.layer * rows + at.row + (this.cursor ? step[0] : 0)));
    const across = Math.min(heads * columns - 1, Math.max(0, at.head * columns + at.column + (this.cursor ? step[1] : 0)));
    this.move({ layer: Math.floor(down / rows), head: Math.floor(across / columns), row: down % rows, column: across % columns });
  }

  move(cell) {
    const [layers, heads, rows, columns] = this.grid.weights.shape;
    const there = cell && cell.layer < layers && cell.head < heads && cell.row < rows && cell.column < columns;
    this.cursor = there ? cell : null;
    this.grid.cursor = this.cursor;
    drawGrid(this.canvas, this.grid, this.mostCell, inks(this.canvas));
    if (!there) return this.read(null);
    const weight = this.grid.weights.values[((cell.layer * heads + cell.head) * rows + cell.row) * columns + cell.column];
    this.read({ ...cell, weight });
  }
}

function describeGrid(grid) {
  const [layers, heads, rows, columns] = grid.weights.shape;
  const size = `${grid.name}: ${layers} layers of ${heads} heads, ${rows} rows by ${columns} columns.`;
  if (grid.current < 0 || !columns || !rows) return size;
  const seen = [];
  for (let tile = 0; tile < layers * heads; tile++) {
    const start = (tile * rows + grid.current) * columns;
    const row = Array.from(grid.weights.values.subarray(start, start + columns));
    const most = Math.max(...row), at = row.indexOf(most);
    seen.push(`layer ${Math.floor(tile / heads) + 1} head ${(tile % heads) + 1} most at ${grid.columns[at]}, position ${at + 1}: ${digits(most)}`);
  }
  return `${size} Row ${grid.rows[grid.current]}: ${seen.join("; ")}.`;
}
