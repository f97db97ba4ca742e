// Curves, y on a logarithmic axis. chart: {x: {min, max, ticks, name, linear}, y: {min, max}, now: x or undefined,
// series: [{name, colour, dash, strong, line: [[x, y]], points: [[x, y, low, high]]}]}. Gives value(pixel), the x there.
function paintChart(pen, width, height, chart, colours) {
  const left = 54, right = width - 14, top = 10, bottom = height - 36;
  const share = ({ min, max, linear }, value) => {
    const within = Math.min(Math.max(value, min), max);
    return linear ? (within - min) / (max - min) : Math.log(within / min) / Math.log(max / min);
  };
  const x = (value) => left + (right - left) * share(chart.x, value);
  const y = (value) => bottom - (bottom - top) * share(chart.y, value);
  const path = (points) => {
    pen.beginPath();
    points.forEach(([px, py], i) => (i ? pen.lineTo(px, py) : pen.moveTo(px, py)));
    pen.stroke();
  };
  pen.textBaseline = "middle";
  pen.setLineDash([]);
  pen.lineWidth = 1;
  pen.strokeStyle = colours.line;
  for (const tick of logTicks(chart.y, (bottom - top) / 22)) {
    path([[left, y(tick)], [right, y(tick)]]);
    label(pen, shortNumber(tick), left - 6, y(tick), "right", colours);
  }
  const ticks = chart.x.ticks.filter((tick, i, all) => width > 480 || all.length < 8 || i % 2 === 0);
  const clear = (tick) => chart.now === undefined || Math.abs(x(tick) - x(chart.now)) > 24; // room for the current one's label
  for (const tick of ticks.filter(clear)) label(pen, tick.toLocaleString("en"), x(tick), bottom + 12, "center", colours);
  label(pen, chart.x.name, (left + right) / 2, bottom + 28, "center", colours);

  if (chart.now !== undefined) {
    pen.strokeStyle = colours.accent;
    pen.setLineDash([3, 3]);
    path([[x(chart.now), top], [x(chart.now), bottom]]);
    pen.setLineDash([]);
    label(pen, chart.now.toLocaleString("en"), x(chart.now), bottom + 12, "center", colours, { strong: true, opacity: 1 });
  }
  for (const { colour, dash, line, strong } of chart.series) {
    pen.strokeStyle = colour;
    pen.lineWidth = strong ? 2.5 : 1.5;
    pen.setLineDash(dash ?? []);
    path(line.map(([px, py]) => [x(px), y(py)]));
  }
  pen.setLineDash([]);
  for (const { colour, points, strong } of chart.series) {
    pen.strokeStyle = pen.fillStyle = colour;
    pen.lineWidth = 1;
    for (const [px, value, low, high] of points) {
      if (strong && high > chart.y.min) path([[x(px), y(low)], [x(px), y(high)]]);
      if (value < chart.y.min) continue;
      pen.beginPath();
      pen.arc(x(px), y(value), strong ? 3.5 : 2.5, 0, 2 * Math.PI);
      pen.fill();
    }
  }
  for (const { name, colour, line, strong } of chart.series) {
    if (!name) continue;
    const [px, value] = line[Math.floor(line.length * 0.82)];
    pen.font = `${strong ? "600 " : ""}12px ${colours.font}`;
    Object.assign(pen, { textAlign: "left", fillStyle: colour });
    pen.fillText(name, x(px) + 8, y(value) + (y(value) < top + 40 ? 11 : -9));
  }
  const { min, max } = chart.x;
  return { value: (px) => min * (max / min) ** Math.min(1, Math.max(0, (px - left) / (right - left))) };
}

// Powers of ten, as many as there is room for, and 2 and 5 between them on a short axis.
function logTicks(axis, room) {
  const first = Math.floor(Math.log10(axis.min)), last = Math.ceil(Math.log10(axis.max)), decades = Math.log10(axis.max / axis.min);
  const every = Math.max(1, Math.ceil(decades / room)), ticks = [];
  for (let power = first; power <= last; power++) {
    if (power % every) continue;
    for (const factor of decades < 2.5 ? [1, 2, 5] : [1]) ticks.push(factor * 10 ** power);
  }
  return ticks.filter((tick) => tick >= axis.min * 0.999 && tick <= axis.max * 1.001);
}

function shortNumber(x) {
  if (x >= 0.001 && x < 10000) return String(Number(x.toPrecision(1)));
  return `1e${Math.round(Math.log10(x))}`;
}
