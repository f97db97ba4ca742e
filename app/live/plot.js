// A curve or a few over one axis, on a canvas, with a mark that may move at every frame.
class Plot {
  constructor(parent, title, height = 190) {
    this.box = make("figure", "picture", parent);
    const head = make("figcaption", "", this.box);
    this.title = make("h3", "", head, title);
    menuOf(head, title, { PNG: () => savePng(title, this.canvas), CSV: () => this.saveCsv(title) });
    this.canvas = make("canvas", "", make("div", "", this.box));
    this.canvas.setAttribute("role", "img");
    this.note = make("p", "note quiet", this.box);
    this.height = height;
  }

  // plot: {x: [from, to], y: [from, to], log: y runs over powers of ten, ticks: {x, y: [[number, text]]}, axis: name of x,
  //        lines: [{name, xs, ys, colour, dots: radius, dash}], mark: {x, y, colour} or null}
  draw(plot, value, description, colours = inks(this.canvas), width = this.canvas.parentElement.clientWidth) {
    this.plot = plot;
    const left = 44, right = 8, top = 8, bottom = 34, height = this.height;
    const pen = sharp(this.canvas, width, height), power = plot.log ? Math.log10 : (y) => y;
    const low = power(plot.y[0]), high = power(plot.y[1]);
    const across = (x) => left + ((x - plot.x[0]) / (plot.x[1] - plot.x[0] || 1)) * (width - left - right);
    const down = (y) => top + (1 - (Math.max(low, Math.min(high, power(y))) - low) / (high - low || 1)) * (height - top - bottom);
    pen.textBaseline = "middle";
    pen.lineWidth = 1;
    pen.strokeStyle = colours.line;
    for (const [y, text] of plot.ticks.y) {
      stroke(pen, [[left, down(y)], [width - right, down(y)]]);
      label(pen, text, left - 6, down(y), "right", colours, { size: 11 });
    }
    for (const [x, text] of plot.ticks.x) label(pen, text, across(x), height - bottom + 11, "center", colours, { size: 11 });
    label(pen, plot.axis, (left + width - right) / 2, height - 7, "center", colours, { size: 11 });
    for (const line of plot.lines) {
      pen.strokeStyle = pen.fillStyle = line.colour;
      pen.lineWidth = 1.6;
      pen.setLineDash(line.dash ?? []);
      const points = Array.from(line.xs, (x, i) => [across(x), down(line.ys[i])]);
      if (line.dots) points.forEach(([x, y]) => disc(pen, x, y, line.dots));
      else stroke(pen, points);
      pen.setLineDash([]);
    }
    if (plot.mark) {
      const x = across(plot.mark.x), y = down(plot.mark.y);
      pen.strokeStyle = pen.fillStyle = plot.mark.colour;
      pen.lineWidth = 1;
      stroke(pen, [[x, top], [x, height - bottom]]);
      disc(pen, x, y, 4.5);
    }
    this.canvas.dataset.v = value;
    this.canvas.setAttribute("aria-label", description);
  }

  saveCsv(name) {
    const lines = ["line,x,y"];
    for (const line of this.plot.lines) Array.from(line.xs).forEach((x, i) => lines.push(`"${line.name}",${x},${line.ys[i]}`));
    saveAs(name, "csv", new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
  }
}

function stroke(pen, points) {
  pen.beginPath();
  points.forEach(([x, y], i) => (i ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  pen.stroke();
}

function disc(pen, x, y, radius) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fill();
}

// Powers of ten between two numbers, every so many.
function powers(low, high, every = 1) {
  const ticks = [];
  for (let power = Math.ceil(Math.log10(low)); power <= Math.log10(high); power += every) ticks.push([10 ** power, power === 0 ? "1" : `10${raised(power)}`]);
  return ticks;
}
