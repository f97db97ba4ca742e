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

// Weights in ink, those of an untrained model in grey.
function shade(colours, weight, grid) {
  return mixed(colours.paper, grid.untrained ? colours.grey : colours.ink, weight);
}

// Signed values: paper at 0, ink at +1, its opposite at -1.
function signed(colours, value) {
  return mixed(colours.paper, value < 0 ? colours.opposite : colours.ink, Math.abs(value));
}

function mixed(from, to, share) {
  const w = Math.min(1, Math.max(0, share));
  return `rgb(${from.map((p, i) => Math.round(p + (to[i] - p) * w)).join()})`;
}

function sharp(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}

// Lines of one grid for the whole canvas, so that they run on from cell to cell.
function hatch(pen, x, y, size, colour) {
  pen.save();
  pen.beginPath();
  pen.rect(x, y, size, size);
  pen.clip();
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
  const roomy = width > 230;
  const left = (grid.bare ? 3 : 16) + (roomy ? Math.min(64, widest) + 6 : 0);
  const tile = (width - left - gap * (heads - 1) - 2) / heads; // 2: the last frame
  const exact = Math.min(mostCell, tile / Math.max(1, columns));
  const cell = exact > 8 ? Math.floor(exact) : exact;
  // Labels shrink with their cells down to 9 pixels; below that the readout has to do.
  const labelled = cell >= 9, size = Math.min(12, cell);
  const most = (Math.max(0, ...grid.columns.map((label) => pen.measureText(label).width)) * size) / 12;
  const upright = most > cell - 1;
  const head = grid.bare ? 2 : 17, top = head + (labelled ? (upright ? Math.min(56, most) + 8 : 16) : 0);
  const pitch = { x: tile + gap, y: Math.max(cell * rows, 24) + gap };
  return { layers, heads, rows, columns, left, top, cell, pitch, roomy, labelled, size, upright, height: top + layers * pitch.y };
}

// grid: {weights: {shape: [L, H, R, C], values}, rows, columns, shown: rows drawn, current: row framed or -1,
//        causal: keys after the row are hatched, name,
//        picked: {layer, head} framed whole in place of a row, bare: no layer and head names, untrained: in grey}
function drawGrid(canvas, grid, mostCell, colours) {
  const width = canvas.parentElement.clientWidth;
  const place = layOut(canvas.getContext("2d"), grid, width, mostCell, colours.font);
  const pen = sharp(canvas, width, place.height);
  const { cell, rows, columns } = place;
  pen.textBaseline = "middle";
  for (let layer = 0; layer < place.layers; layer++) {
    const y = place.top + layer * place.pitch.y;
    if (!grid.bare) {
      pen.save();
      pen.translate(6, y + (cell * rows) / 2);
      pen.rotate(-Math.PI / 2);
      label(pen, `layer ${layer + 1}`, 0, 0, "center", colours, { opacity: 0.65 });
      pen.restore();
    }
    for (let head = 0; head < place.heads; head++) {
      const x = place.left + head * place.pitch.x;
      if (layer === 0) drawTop(pen, grid, place, x, head, colours);
      drawTile(pen, grid, place, layer, head, x, y, colours);
    }
    if (!place.roomy || !place.labelled) continue;
    for (let r = 0; r < rows; r++) {
      const on = r === grid.current;
      const style = { size: place.size, opacity: on ? 1 : 0.75, strong: on };
      label(pen, r < grid.shown ? grid.rows[r] : "·", place.left - 5, y + (r + 0.5) * cell, "right", colours, style);
    }
  }
  grid.place = place;
}

function label(pen, text, x, y, align, colours, { size = 12, opacity = 0.75, strong = false } = {}) {
  pen.font = `${strong ? "600 " : ""}${size}px ${colours.font}`;
  pen.textAlign = align;
  pen.globalAlpha = opacity;
  pen.fillStyle = strong ? colours.accent : colours.text;
  pen.fillText(text, x, y);
  pen.globalAlpha = 1;
}

function drawTop(pen, grid, place, x, head, colours) {
  const { cell, columns } = place;
  const name = place.pitch.x < 48 ? `${head + 1}` : `head ${head + 1}`;
  if (!grid.bare) label(pen, name, x, 7, "left", colours, { opacity: 0.65 });
  if (!place.labelled) return;
  for (let c = 0; c < columns; c++) {
    const at = x + (c + 0.5) * cell;
    const text = grid.causal && c >= grid.shown ? "·" : grid.columns[c]; // not read yet
    if (place.upright) {
      pen.save();
      pen.translate(at, place.top - 5);
      pen.rotate(-Math.PI / 2);
      label(pen, text, 0, 0, "left", colours, { size: place.size });
      pen.restore();
    } else label(pen, text, at, place.top - 8, "center", colours, { size: place.size });
  }
}

function drawTile(pen, grid, place, layer, head, x, y, colours) {
  const { cell, rows, columns } = place;
  const line = cell >= 8 ? 1 : 0; // paper shows between cells when there is room
  const start = (layer * place.heads + head) * rows * columns;
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) {
      const cx = x + c * cell, cy = y + r * cell;
      if (grid.causal && c > r) hatch(pen, cx, cy, cell, colours.line);
      else if (r < grid.shown) {
        pen.fillStyle = shade(colours, grid.weights.values[start + r * columns + c], grid);
        pen.fillRect(cx, cy, cell - line, cell - line);
      }
    }
  }
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
