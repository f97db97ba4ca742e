// A grid of heatmaps on one canvas: layers down, heads across. Weights run from paper (0) to ink (1).

const KNOWN_COLOURS = new Map();

function rgb(css) {
  if (!KNOWN_COLOURS.has(css)) KNOWN_COLOURS.set(css, parsed(css));
  return KNOWN_COLOURS.get(css);
}

function parsed(css) {
  const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  probe.fillStyle = css;
  probe.fillRect(0, 0, 1, 1);
  return Array.from(probe.getImageData(0, 0, 1, 1).data.slice(0, 3));
}

// The theme's colours, read where the component stands.
function inks(element) {
  const style = getComputedStyle(element);
  const of = (name) => style.getPropertyValue(name).trim();
  return {
    paper: rgb(of("--st-background-color")),
    ink: rgb(of("--st-blue-color")),
    grey: rgb(of("--st-gray-color")),
    opposite: rgb(of("--st-orange-color")),
    accent: of("--st-primary-color"),
    text: of("--st-text-color"),
    line: of("--st-border-color"),
    font: of("--st-font"),
  };
}

// Weights in ink, those of an untrained model in grey; signed values with grid.most, their largest magnitude.
function shade(colours, weight, grid) {
  if (grid.most !== undefined) return signed(colours, weight / (grid.most || 1));
  return mixed(colours.paper, grid.untrained ? colours.grey : colours.ink, weight * (grid.tone ?? 1));
}

// Signed values: paper at 0, ink at +1, its opposite at -1.
function signed(colours, value) {
  return mixed(colours.paper, value < 0 ? colours.opposite : colours.ink, Math.abs(value));
}

function mixed(from, to, share) {
  const w = Math.min(1, Math.max(0, share));
  return [from[0] + (to[0] - from[0]) * w, from[1] + (to[1] - from[1]) * w, from[2] + (to[2] - from[2]) * w];
}

// Cells as one small picture, a pixel each, stretched to its place: a hundred times fewer calls than a rectangle each.
const SHEET = document.createElement("canvas");
const SHEET_PEN = SHEET.getContext("2d", { willReadFrequently: true });

// colourOf(row, column) gives [red, green, blue], or null where nothing is drawn; row counts from 0 at y.
function paintCells(pen, rows, columns, colourOf, x, y, width, height) {
  if (!rows || !columns) return;
  if (SHEET.width !== columns || SHEET.height !== rows) Object.assign(SHEET, { width: columns, height: rows });
  const image = SHEET_PEN.createImageData(columns, rows);
  for (let row = 0, at = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++, at += 4) {
      const colour = colourOf(row, column);
      if (!colour) continue;
      image.data[at] = colour[0];
      image.data[at + 1] = colour[1];
      image.data[at + 2] = colour[2];
      image.data[at + 3] = 255;
    }
  }
  SHEET_PEN.putImageData(image, 0, 0);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(SHEET, x, y, width, height);
}

function sharp(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const size = { width: Math.round(width * ratio), height: Math.round(height * ratio) };
  if (canvas.width !== size.width || canvas.height !== size.height) {
    Object.assign(canvas, size);
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}

// A causal mask: keys after each row's own.
const afterRow = (layer, head, row, column) => column > row;

// All hidden cells of one tile, hatched as one area.
function hatch(pen, x, y, { from, to }, rows, columns, cell, hidden, colour) {
  pen.save();
  pen.beginPath();
  for (let row = from; row < to; row++) {
    for (let column = 0; column < columns; column++) {
      const from = column;
      while (column < columns && hidden(row, column)) column++;
      if (column > from) pen.rect(x + from * cell, y + row * cell, (column - from) * cell, cell);
    }
  }
  pen.clip();
  const size = Math.max(rows, columns) * cell;
  pen.strokeStyle = colour;
  pen.lineWidth = 1;
  pen.beginPath();
  const every = 4;
  for (let sum = Math.ceil((x + y) / every) * every; sum < x + y + 2 * size; sum += every) {
    pen.moveTo(sum - y, y);
    pen.lineTo(sum - y - size, y + size);
  }
  pen.stroke();
  pen.restore();
}

// Where everything stands, in CSS pixels. The grid never wraps: heads stay side by side at any width.
function layOut(pen, grid, width, mostCell, font) {
  const [layers, heads] = grid.weights.shape;
  const rows = grid.rows.length, columns = grid.columns.length, gap = heads > 4 ? 6 : 10;
  pen.font = `12px ${font}`;
  const widest = Math.max(0, ...grid.rows.map((label) => pen.measureText(label).width));
  const roomy = width > 170;
  const left = (grid.bare ? 3 : 16) + (roomy ? Math.ceil(Math.min(64, widest)) + 6 : 0); // whole pixels: sharp edges
  const tile = Math.floor((width - left - gap * (heads - 1) - 2) / heads); // 2: the last frame
  const exact = Math.min(mostCell, tile / Math.max(1, columns));
  const cell = exact > 8 ? Math.floor(exact) : exact;
  // Labels shrink with their cells down to 9 pixels; below that the readout has to do.
  const labelled = cell >= 9, size = Math.min(12, cell);
  const most = (Math.max(0, ...grid.columns.map((label) => pen.measureText(label).width)) * size) / 12;
  const upright = most > cell - 1;
  const head = grid.bare ? 2 : 17, top = head + (labelled ? (upright ? Math.ceil(Math.min(56, most)) + 8 : 16) : 0);
  const pitch = { x: tile + gap, y: Math.max(cell * rows, 24) + gap };
  return { layers, heads, rows, columns, left, top, cell, pitch, roomy, labelled, size, upright, height: top + layers * pitch.y };
}

// grid: {weights: {shape: [L, H, R, C], values}, rows, columns, shown: rows drawn, current: row framed or -1,
//        hidden(layer, head, row, column): hatched, and no weight there; growing: columns come with their rows, name,
//        most: values are signed and this is their largest magnitude,
//        picked: {layer, head} framed whole in place of a row, bare: no layer and head names, untrained: in grey,
//        axes: what a tile's row and column are called in place of layer and head; an empty name is not drawn,
//        tone: how deep the ink of 1 is, over(pen, {layer, head, x, y, cell, colours}): drawn onto each tile}
function drawGrid(canvas, grid, mostCell, colours) {
  const width = canvas.parentElement.clientWidth;
  grid.place = layOut(canvas.getContext("2d"), grid, width, mostCell, colours.font);
  drawRows(sharp(canvas, width, grid.place.height), grid, colours, { from: 0, to: grid.place.rows });
}

// Rows from..to of a grid that is drawn already and has changed nowhere else: what a step costs when one row follows
// another.
function redrawRows(canvas, grid, colours, { from, to }) {
  const { layers, heads, rows, columns, left, top, cell, pitch } = grid.place, edge = 2; // a row's frame goes so far beyond it
  const pen = canvas.getContext("2d");
  pen.save();
  pen.beginPath();
  for (let layer = 0; layer < layers; layer++) {
    const y = top + layer * pitch.y;
    pen.rect(0, Math.floor(y + from * cell) - edge, canvas.width, Math.ceil((to - from) * cell) + 2 * edge);
  }
  if (grid.growing) {
    for (let head = 0; head < heads; head++) pen.rect(left + head * pitch.x + from * cell, 14, (Math.min(to, columns) - from) * cell, top - 14);
  }
  pen.clip();
  pen.clearRect(0, 0, canvas.width, canvas.height);
  drawRows(pen, grid, colours, { from: Math.max(0, from - 1), to: Math.min(rows, to + 1) });
  pen.restore();
}

function drawRows(pen, grid, colours, span) {
  const { place } = grid, { cell, rows } = place;
  pen.textBaseline = "middle";
  for (let layer = 0; layer < place.layers; layer++) {
    const y = place.top + layer * place.pitch.y;
    if (!grid.bare && axesOf(grid)[0]) {
      pen.save();
      pen.translate(6, y + (cell * rows) / 2);
      pen.rotate(-Math.PI / 2);
      label(pen, place.pitch.y < 7 * axesOf(grid)[0].length ? `${layer + 1}` : `${axesOf(grid)[0]} ${layer + 1}`, 0, 0, "center", colours, { opacity: 0.65 });
      pen.restore();
    }
    for (let head = 0; head < place.heads; head++) {
      const x = place.left + head * place.pitch.x;
      if (layer === 0) drawTop(pen, grid, place, x, head, colours, span);
      drawTile(pen, grid, place, layer, head, x, y, colours, span);
    }
    if (!place.roomy || !place.labelled) continue;
    for (let r = span.from; r < span.to; r++) {
      const on = r === grid.current;
      const style = { size: place.size, opacity: on ? 1 : 0.75, strong: on };
      label(pen, r < grid.shown ? grid.rows[r] : "·", place.left - 5, y + (r + 0.5) * cell, "right", colours, style);
    }
  }
}

const axesOf = (grid) => grid.axes ?? ["layer", "head"];

function label(pen, text, x, y, align, colours, { size = 12, opacity = 0.75, strong = false } = {}) {
  pen.font = `${strong ? "600 " : ""}${size}px ${colours.font}`;
  pen.textAlign = align;
  pen.globalAlpha = opacity;
  pen.fillStyle = strong ? colours.accent : colours.text;
  pen.fillText(text, x, y);
  pen.globalAlpha = 1;
}

// Column labels: all of them, or those of a growing picture's rows.
function drawTop(pen, grid, place, x, head, colours, span) {
  const { cell, rows, columns } = place, whole = span.from === 0 && span.to === rows;
  if (!whole && !grid.growing) return;
  const name = place.pitch.x < 8 * axesOf(grid)[1].length + 16 ? `${head + 1}` : `${axesOf(grid)[1]} ${head + 1}`;
  if (!grid.bare && axesOf(grid)[1]) label(pen, name, x, 7, "left", colours, { opacity: 0.65 });
  if (!place.labelled) return;
  for (let c = whole ? 0 : span.from; c < (whole ? columns : Math.min(columns, span.to)); c++) {
    const at = x + (c + 0.5) * cell;
    const text = grid.growing && c >= grid.shown ? "·" : grid.columns[c]; // not read yet
    if (place.upright) {
      pen.save();
      pen.translate(at, place.top - 5);
      pen.rotate(-Math.PI / 2);
      label(pen, text, 0, 0, "left", colours, { size: place.size });
      pen.restore();
    } else label(pen, text, at, place.top - 8, "center", colours, { size: place.size });
  }
}

function drawTile(pen, grid, place, layer, head, x, y, colours, span) {
  const { cell, rows, columns } = place, n = span.to - span.from;
  const line = cell >= 8 ? 1 : 0; // paper shows between cells when there is room
  const start = (layer * place.heads + head) * rows * columns, width = columns * cell, top = y + span.from * cell;
  const hidden = (r, c) => Boolean(grid.hidden?.(layer, head, r, c));
  const seen = (r, c) => r < grid.shown && !hidden(r, c);
  const colourOf = (i, c) => {
    const r = span.from + i;
    return seen(r, c) ? shade(colours, grid.weights.values[start + r * columns + c], grid) : null;
  };
  paintCells(pen, n, columns, colourOf, x, top, width, n * cell);
  if (line) {
    pen.fillStyle = `rgb(${colours.paper.join()})`;
    for (let c = 1; c <= columns; c++) pen.fillRect(x + c * cell - 1, top, 1, n * cell);
    for (let r = span.from + 1; r <= span.to; r++) pen.fillRect(x, y + r * cell - 1, width, 1);
  }
  if (grid.hidden) hatch(pen, x, y, span, rows, columns, cell, hidden, colours.line);
  grid.over?.(pen, { layer, head, x, y, cell, colours });
  pen.strokeStyle = colours.line;
  pen.lineWidth = 1;
  pen.strokeRect(x - 0.5, y - 0.5, columns * cell + 1 - line, rows * cell + 1 - line);
  const picked = !grid.picked || (grid.picked.layer === layer && grid.picked.head === head);
  pen.strokeStyle = colours.accent;
  pen.lineWidth = 2;
  if (grid.picked && picked) pen.strokeRect(x - 2, y - 2, columns * cell + 4 - line, rows * cell + 4 - line);
  else if (grid.current >= 0 && columns && picked) {
    pen.strokeRect(x - 1, y + grid.current * cell - 1, columns * cell + 2 - line, cell + 2 - line);
  }
}

// Which cell a point of the canvas lies on: {layer, head, row, column, weight} or null.
function cellAt(grid, px, py) {
  const { left, top, pitch, cell, rows, columns, layers, heads } = grid.place;
  const head = Math.floor((px - left) / pitch.x), layer = Math.floor((py - top) / pitch.y);
  const column = Math.floor((px - left - head * pitch.x) / cell), row = Math.floor((py - top - layer * pitch.y) / cell);
  const inside = head >= 0 && head < heads && layer >= 0 && layer < layers && row >= 0 && row < rows && column >= 0 && column < columns;
  if (!inside) return null;
  const weight = grid.weights.values[((layer * heads + head) * rows + row) * columns + column];
  return { layer, head, row, column, weight };
}
