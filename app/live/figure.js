// A drawing with its title, its readout and its save menu: paint(pen, width, height, colours) draws it with a
// canvas's pen, or with one that writes the same strokes as SVG; rows() gives its numbers for a CSV, header first.
class Figure {
  constructor(parent, title, height, note = "") {
    this.box = make("figure", "picture", parent);
    const head = make("figcaption", "", this.box);
    this.title = make("h3", "", head, title);
    this.height = height;
    saveMenu(head, this.title, () => this.canvas, () => this, { PNG: savePng, SVG: saveDrawing, CSV: saveRows });
    this.canvas = make("canvas", "", make("div", "", this.box));
    this.canvas.setAttribute("role", "img");
    this.note = make("p", "note quiet", this.box, note);
  }

  draw(paint, rows, value, description, colours = inks(this.canvas), width = this.canvas.parentElement.clientWidth) {
    Object.assign(this, { paint, rows });
    paint(sharp(this.canvas, width, this.height), width, this.height, colours);
    this.canvas.dataset.v = value;
    this.canvas.setAttribute("aria-label", description);
  }
}

function saveRows(name, canvas, figure) {
  const cell = (value) => (typeof value === "string" ? `"${value.replaceAll('"', '""')}"` : value);
  saveAs(name, "csv", new Blob([figure.rows().map((row) => row.map(cell).join()).join("\n") + "\n"], { type: "text/csv" }));
}

function saveDrawing(name, canvas, figure) {
  const { clientWidth: width, clientHeight: height } = canvas, colours = inks(canvas), pen = new SvgPen();
  figure.paint(pen, width, height, colours);
  const paper = `<rect width="100%" height="100%" fill="rgb(${colours.paper.join()})"/>`;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="sans-serif">${paper}${pen.parts.join("")}</svg>`;
  saveAs(name, "svg", new Blob([svg], { type: "image/svg+xml" }));
}

// Words that have not changed need no new layout.
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Blue is with the division, orange without, in every figure of the page.
function sideLegend(parent, without) {
  const legend = make("div", "legend sides", parent);
  make("span", "with", legend, "● ÷ √d_k");
  make("span", "without", legend, `● ${without}`);
}

// Four digits for what is compared with theory; very small and very large numbers keep theirs.
function four(x) {
  if (Number.isNaN(x)) return "–";
  const size = Math.abs(x);
  if (size === 0) return "0";
  if (size < 0.001 || size >= 1e7) return x.toExponential(2).replace("+", "");
  if (size >= 1000) return Math.round(x).toLocaleString("en");
  return x.toPrecision(4);
}
