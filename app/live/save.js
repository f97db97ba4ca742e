// Every figure leaves the page from itself: as PNG as it is seen, as SVG, or its numbers as CSV.

// writers: by the name of a kind, what writes a file from (title, canvas, grid or figure).
function saveMenu(box, title, canvas, grid, writers = { PNG: savePng, SVG: saveSvg, CSV: saveCsv }) {
  const kinds = Object.entries(writers).map(([kind, write]) => [kind, () => write(named(title), canvas(), grid())]);
  menuOf(box, title, Object.fromEntries(kinds));
}

// A table's numbers as CSV: lines() gives rows of cells, the first one naming them.
function saveTableMenu(box, title, lines) {
  const text = () => lines().map((cells) => cells.map(quoted).join() + "\n").join("");
  menuOf(box, title, { CSV: () => saveAs(named(title), "csv", new Blob([text()], { type: "text/csv" })) });
}

const quoted = (cell) => (typeof cell === "number" ? cell : `"${String(cell).replaceAll('"', '""')}"`);

// A title is a text, or the element that holds it, where it may change.
const named = (title) => title.textContent ?? title;

// kinds: {name on the button: what writes it}.
function menuOf(box, title, kinds) {
  const menu = document.createElement("details");
  menu.className = "save";
  const summary = document.createElement("summary");
  summary.textContent = "save";
  const name = () => summary.setAttribute("aria-label", `Save ${named(title)}`);
  if (title.textContent !== undefined) new MutationObserver(name).observe(title, { childList: true });
  name();
  menu.append(summary);
  for (const [kind, write] of Object.entries(kinds)) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = kind;
    button.addEventListener("click", () => {
      write();
      menu.open = false;
    });
    menu.append(button);
  }
  box.append(menu);
}

function saveAs(name, ending, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${name.toLowerCase().replace(/[^a-z0-9]+/g, "-")}.${ending}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function savePng(name, canvas) {
  const sheet = document.createElement("canvas");
  Object.assign(sheet, { width: canvas.width, height: canvas.height });
  const pen = sheet.getContext("2d");
  pen.fillStyle = getComputedStyle(canvas).getPropertyValue("--st-background-color");
  pen.fillRect(0, 0, sheet.width, sheet.height); // a canvas is transparent where nothing is drawn
  pen.drawImage(canvas, 0, 0);
  sheet.toBlob((blob) => saveAs(name, "png", blob), "image/png");
}

function saveCsv(name, canvas, grid) {
  const lines = ["layer,head,row,row_label,column,column_label,weight"];
  eachCell(grid, (layer, head, row, column, weight) => {
    lines.push([layer + 1, head + 1, row + 1, quoted(grid.rows[row]), column + 1, quoted(grid.columns[column]), weight].join());
  });
  saveAs(name, "csv", new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
}

function saveSvg(name, canvas, grid) {
  const { left, top, pitch, cell, layers, heads } = grid.place, colours = inks(canvas);
  const escape = (text) => String(text).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  const parts = [];
  eachCell(grid, (layer, head, row, column, weight) => {
    const x = left + head * pitch.x + column * cell, y = top + layer * pitch.y + row * cell;
    parts.push(`<rect x="${x}" y="${y}" width="${cell - 1}" height="${cell - 1}" fill="rgb(${shade(colours, weight, grid).map(Math.round).join()})"><title>${weight}</title></rect>`);
  });
  const text = (x, y, label, turn = "") =>
    parts.push(`<text x="${x}" y="${y}" font-size="${Math.min(12, cell)}" fill="${colours.text}" ${turn}>${escape(label)}</text>`);
  for (let layer = 0; layer < layers; layer++) {
    grid.rows.forEach((label, row) => text(2, top + layer * pitch.y + (row + 0.8) * cell, label));
    for (let head = 0; head < heads; head++) {
      if (layer) continue;
      text(left + head * pitch.x, 10, grid.bare ? "" : `head ${head + 1}`);
      grid.columns.forEach((label, column) => {
        const x = left + head * pitch.x + (column + 0.7) * cell;
        text(x, top - 3, label, `transform="rotate(-90 ${x} ${top - 3})"`);
      });
    }
  }
  const { clientWidth: width, clientHeight: height } = canvas;
  const paper = `<rect width="100%" height="100%" fill="rgb(${colours.paper.join()})"/>`;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="sans-serif">${paper}${parts.join("")}</svg>`;
  saveAs(name, "svg", new Blob([svg], { type: "image/svg+xml" }));
}

// All cells that have a weight: not masked and, in a growing picture, already written.
function eachCell(grid, visit) {
  const [layers, heads, rows, columns] = grid.weights.shape;
  for (let layer = 0; layer < layers; layer++)
    for (let head = 0; head < heads; head++)
      for (let row = 0; row < Math.min(rows, grid.shown); row++)
        for (let column = 0; column < columns; column++) {
          if (grid.hidden?.(layer, head, row, column)) continue;
          visit(layer, head, row, column, grid.weights.values[((layer * heads + head) * rows + row) * columns + column]);
        }
}
