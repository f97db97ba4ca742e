// Strokes that pictures share, for a canvas's pen or for one that writes SVG.
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

const raised = (power) => Array.from(String(power), (sign) => ({ "-": "⁻" })[sign] ?? "⁰¹²³⁴⁵⁶⁷⁸⁹"[sign]).join("");

// The part of a canvas's pen that figures use, writing SVG.
class SvgPen {
  constructor() {
    Object.assign(this, { parts: [], path: "", dash: [], globalAlpha: 1, lineWidth: 1, textAlign: "left", font: "12px" });
  }

  beginPath() {
    this.path = "";
  }

  moveTo(x, y) {
    this.path += `M${x.toFixed(1)} ${y.toFixed(1)}`;
  }

  lineTo(x, y) {
    this.path += `L${x.toFixed(1)} ${y.toFixed(1)}`;
  }

  bezierCurveTo(...points) {
    this.path += `C${points.map((point) => point.toFixed(1)).join(" ")}`;
  }

  // Whole circles only.
  arc(x, y, r) {
    this.path += `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`;
  }

  setLineDash(dash) {
    this.dash = dash;
  }

  stroke() {
    this.parts.push(`<path d="${this.path}" fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}" stroke-dasharray="${this.dash.join(" ")}" opacity="${this.globalAlpha}"/>`);
  }

  fill() {
    this.parts.push(`<path d="${this.path}" fill="${this.fillStyle}" opacity="${this.globalAlpha}"/>`);
  }

  fillRect(x, y, width, height) {
    this.parts.push(`<rect x="${x}" y="${y}" width="${width}" height="${height}" fill="${this.fillStyle}" opacity="${this.globalAlpha}"/>`);
  }

  fillText(text, x, y) {
    const anchor = { left: "start", center: "middle", right: "end" }[this.textAlign], size = parseInt(this.font.match(/\d+px/), 10);
    const escaped = String(text).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
    this.parts.push(`<text x="${x}" y="${y}" font-size="${size}" text-anchor="${anchor}" dominant-baseline="central" fill="${this.fillStyle}" opacity="${this.globalAlpha}">${escaped}</text>`);
  }
}
