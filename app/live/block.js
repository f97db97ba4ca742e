// Read what pack() in Python wrote: {header, array(name)} with array(name) = {shape, values: Float32Array}.
function readBlock(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const floats = new Float32Array(bytes.slice(4 + length).buffer); // slice: the block need not be aligned
  const array = (name) => {
    const { shape, start } = header.arrays[name];
    const size = shape.reduce((a, b) => a * b, 1);
    return { shape, values: floats.subarray(start, start + size) };
  };
  return { header, array };
}

// Three digits, as everywhere on screen; what rounds to nothing but is not is shown as such.
function digits(x) {
  return x > 0 && x < 0.0005 ? "<.001" : x.toFixed(3);
}
