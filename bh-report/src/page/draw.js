"use strict";
// Pictures: canvases that are drawn anew when the page changes its width or its colours.

const pictures = [];

// The stretch of the timeline that is looked at; null for all of it.
let stretch = null;

function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

// A canvas of this height; `draw` gets its context and width, and returns what lies where, for the pointer.
function picture(place, height, draw) {
  const canvas = document.createElement("canvas");
  place.append(canvas);
  const own = { canvas, things: [] };
  own.redraw = () => {
    const width = canvas.clientWidth || 600, scale = window.devicePixelRatio || 1;
    canvas.style.height = height + "px";
    canvas.width = width * scale;
    canvas.height = height * scale;
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    own.things = draw(context, width) || [];
  };
  own.at = (event) => {
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    return own.things.findLast((thing) => x >= thing.x && x <= thing.x + thing.w && y >= thing.y && y <= thing.y + thing.h);
  };
  canvas.addEventListener("pointermove", (event) => point(event, own.at(event)));
  canvas.addEventListener("pointerleave", () => point(null, null));
  pictures.push(own);
  own.redraw();
  return own;
}

function redrawAll() { pictures.forEach((own) => own.redraw()); }
window.addEventListener("resize", redrawAll);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);

function point(event, thing) {
  const tip = document.getElementById("tip");
  tip.hidden = !thing;
  if (!thing) return;
  tip.textContent = thing.text;
  tip.style.left = Math.min(event.clientX + 12, window.innerWidth - tip.offsetWidth - 8) + "px";
  tip.style.top = event.clientY + 16 + "px";
}

// Round numbers between two others, `about` of them.
function ticks(low, high, about) {
  const rough = (high - low) / about, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((step) => step >= rough);
  const all = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) all.push(at);
  return all;
}

function axis(context, texts, y) {
  context.fillStyle = colour("--faint");
  const right = context.canvas.clientWidth;
  for (const [x, text] of texts) {
    context.textAlign = x < 20 ? "left" : x > right - 20 ? "right" : "center";
    context.fillText(text, x, y);
  }
}

// Rows of nested events. Names have colours of their own.
function drawTimeline(place, timeline) {
  const LANE = 16, GAP = 22;
  const lanes = timeline.rows.map((row) => row.events.reduce((most, event) => Math.max(most, event[2] + 1), 1));
  const height = lanes.reduce((sum, count) => sum + count * LANE + GAP, 24);
  const ends = timeline.rows.flatMap((row) => row.events).map((event) => event[0] + event[1]);
  const all = [0, ends.reduce((a, b) => Math.max(a, b), 1)];
  let range = stretch ?? all;
  const own = picture(place, height, (context, width) => {
    const x = (time) => ((time - range[0]) / (range[1] - range[0])) * width, things = [];
    let top = 0;
    timeline.rows.forEach((row, number) => {
      context.fillStyle = colour("--faint");
      context.textAlign = "left";
      context.fillText(row.label, 2, top + GAP / 2);
      for (const [begin, duration, depth, name, kernel] of row.events) {
        const left = Math.max(x(begin), 0), right = Math.min(x(begin + duration), width), y = top + GAP + depth * LANE;
        if (right < 0 || left > width) continue;
        const w = Math.max(right - left, 0.7);
        context.fillStyle = kernel === null ? tint(hue(name), 25) : tint(kernel * 137.5, 70);
        context.fillRect(left, y, w, LANE - 2);
        if (w > 40) {
          context.save();
          context.beginPath();
          context.rect(left, y, w, LANE - 2);
          context.clip();
          context.fillStyle = colour("--ink");
          context.fillText(name, left + 3, y + LANE / 2 - 1);
          context.restore();
        }
        things.push({ x: left, y, w, h: LANE - 2, kernel, text: `${name}: ${time(duration * 1e-6)} from ${time(begin * 1e-6)}` });
      }
      top += lanes[number] * LANE + GAP;
    });
    const marks = ticks(range[0], range[1], Math.max(width / 130, 2));
    axis(context, marks.map((at) => [x(at), time(at * 1e-6)]), height - 10);
    return things;
  });
  let from = null;
  const at = (event) => range[0] + (event.offsetX / own.canvas.clientWidth) * (range[1] - range[0]);
  own.canvas.addEventListener("pointerdown", (event) => { from = [at(event), event.offsetX]; });
  own.canvas.addEventListener("pointerup", (event) => {
    if (from && Math.abs(event.offsetX - from[1]) > 5) {
      range = stretch = [Math.min(from[0], at(event)), Math.max(from[0], at(event))];
      own.redraw();
    } else if (own.at(event)) open("kernel-" + own.at(event).kernel);
    from = null;
  });
  own.canvas.addEventListener("dblclick", () => { range = all; stretch = null; own.redraw(); });
}

function hue(name) {
  let hash = 7;
  for (const letter of name) hash = (hash * 31 + letter.charCodeAt(0)) % 360;
  return hash;
}

function tint(hue, saturation) {
  const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
  return `hsl(${hue % 360} ${saturation}% ${dark ? 34 : 78}%)`;
}

function open(id) {
  const details = document.getElementById(id);
  if (!details) return;
  details.open = true;
  details.scrollIntoView({ block: "center" });
}

// Steps of bytes over time, a line for each rank.
function drawMemory(place, levels) {
  const HEIGHT = 200, LEFT = 70, BOTTOM = 24;
  const last = levels.reduce((most, level) => Math.max(most, level[1]), 1), top = levels.reduce((most, level) => Math.max(most, level[2]), 1);
  picture(place, HEIGHT, (context, width) => {
    const x = (time) => LEFT + (time / last) * (width - LEFT - 10), y = (bytes) => 10 + (1 - bytes / top) * (HEIGHT - BOTTOM - 10);
    context.strokeStyle = colour("--line");
    context.fillStyle = colour("--faint");
    context.textAlign = "right";
    for (const part of [0, 0.5, 1]) {
      context.beginPath();
      context.moveTo(LEFT, y(part * top));
      context.lineTo(width - 10, y(part * top));
      context.stroke();
      context.fillText(size(part * top), LEFT - 6, y(part * top));
    }
    axis(context, ticks(0, last, Math.max(width / 130, 2)).map((at) => [x(at), time(at * 1e-6)]), HEIGHT - 8);
    for (const rank of new Set(levels.map((level) => level[0]))) {
      context.strokeStyle = rank === 0 ? colour("--accent") : tint(rank * 137.5, 70);
      context.lineWidth = 1.5;
      context.beginPath();
      let before = y(0);
      context.moveTo(x(0), before);
      for (const [, time, bytes] of levels.filter((level) => level[0] === rank)) {
        context.lineTo(x(time), before);
        before = y(bytes);
        context.lineTo(x(time), before);
      }
      context.lineTo(x(last), before);
      context.stroke();
    }
  });
}

// Kernels as points below two roofs, both axes logarithmic.
function drawRoofline(place, kernels, roof) {
  const HEIGHT = 340, LEFT = 70, BOTTOM = 40;
  const points = kernels.map((kernel) => ({ kernel, x: kernel.work / kernel.bytes, y: kernel.work / kernel.seconds }));
  const edge = roof.operations / roof.bytes, xs = points.map((point) => point.x), ys = points.map((point) => point.y);
  const low = Math.min(...xs, edge / 10) / 2, high = Math.max(...xs, edge) * 4;
  const bottom = Math.min(...ys, roof.operations / 100) / 2, top = Math.max(...ys, roof.operations) * 2;
  const longest = Math.max(...kernels.map((kernel) => kernel.seconds));
  picture(place, HEIGHT, (context, width) => {
    const part = (value, from, to) => Math.log(value / from) / Math.log(to / from);
    const x = (value) => LEFT + part(value, low, high) * (width - LEFT - 10);
    const y = (value) => 10 + (1 - part(value, bottom, top)) * (HEIGHT - BOTTOM - 10);
    const powers = (from, to) => {
      const all = [];
      for (let at = 10 ** Math.ceil(Math.log10(from)); at <= to; at *= 10) all.push(at);
      return all;
    };
    context.strokeStyle = colour("--line");
    context.fillStyle = colour("--faint");
    context.textAlign = "right";
    for (const at of powers(bottom, top)) {
      context.beginPath();
      context.moveTo(LEFT, y(at));
      context.lineTo(width - 10, y(at));
      context.stroke();
      context.fillText(`${amount(at)}/s`, LEFT - 6, y(at));
    }
    axis(context, powers(low, high).map((at) => [x(at), +at.toPrecision(2)]), HEIGHT - BOTTOM + 12);
    axis(context, [[(LEFT + width) / 2, "operations per byte"]], HEIGHT - 8);
    context.strokeStyle = colour("--hot");
    context.lineWidth = 2;
    context.save();
    context.beginPath();
    context.rect(LEFT, 10, width - LEFT - 10, HEIGHT - BOTTOM - 10);
    context.clip();
    context.beginPath();
    context.moveTo(x(low), y(low * roof.bytes));
    context.lineTo(x(edge), y(roof.operations));
    context.lineTo(x(high), y(roof.operations));
    context.stroke();
    context.restore();
    return points.map(({ kernel, x: over, y: up }) => {
      const radius = 3 + 9 * Math.sqrt(kernel.seconds / longest);
      context.globalAlpha = 0.7;
      context.fillStyle = colour("--accent");
      context.beginPath();
      context.arc(x(over), y(up), radius, 0, 2 * Math.PI);
      context.fill();
      context.globalAlpha = 1;
      const text = `${kernel.label}: ${amount(up)} operations/s, ${over.toPrecision(2)} per byte`;
      return { x: x(over) - radius, y: y(up) - radius, w: 2 * radius, h: 2 * radius, text };
    });
  });
}

// The array with a bad number as a map: the last two axes, or one.
function drawMap(place, { shape, plane, high, wide, means, bad, count }) {
  const LEFT = 74, TOP = 6, BOTTOM = 40, single = shape.length < 2;
  const [rows, columns] = single ? [1, shape[0] ?? 1] : shape.slice(-2);
  const cell = single ? 28 : Math.max(6, Math.min(16, 320 / high)), axes = shape.length;
  const known = means.filter((mean) => mean !== null), low = Math.min(...known), top = Math.max(...known);
  const span = (at, cells, extent) => {
    const first = Math.ceil((at * extent) / cells), last = Math.ceil(((at + 1) * extent) / cells) - 1;
    return first === last ? `${first}` : `${first} to ${last}`;
  };
  const before = plane.length ? ` at (${[...plane, "…", "…"].join(", ")})` : "";
  place.append(element("p", { className: "note" }, `Shape (${shape.join(", ")})${before}: ${counted(count, "bad element")}.`));
  const own = picture(place, TOP + high * cell + BOTTOM, (context, width) => {
    const across = Math.min((width - LEFT - 10) / wide, single ? 28 : 16), things = [];
    for (let at = 0; at < high * wide; at += 1) {
      const row = Math.floor(at / wide), column = at % wide, x = LEFT + column * across, y = TOP + row * cell;
      const part = means[at] === null || top === low ? 0.4 : (means[at] - low) / (top - low);
      context.globalAlpha = bad[at] ? 1 : 0.08 + 0.42 * part;
      context.fillStyle = colour(bad[at] ? "--hot" : "--ink");
      context.fillRect(x, y, Math.max(across - 0.5, 0.5), cell - 0.5);
      const index = single ? span(column, wide, columns) : `(${span(row, high, rows)}, ${span(column, wide, columns)})`;
      const mean = means[at] === null ? "no finite element" : `mean ${+means[at].toPrecision(4)}`;
      things.push({ x, y, w: across, h: cell, text: `${index}: ${bad[at] ? counted(bad[at], "bad element") + ", " : ""}${mean}` });
    }
    context.globalAlpha = 1;
    context.strokeStyle = colour("--faint");
    context.strokeRect(LEFT - 0.5, TOP - 0.5, wide * across, high * cell);
    const label = (number) => `axis ${number}`, right = LEFT + wide * across;
    axis(context, [[LEFT, "0"], [right, String(columns - 1)]], TOP + high * cell + 12);
    axis(context, [[(LEFT + right) / 2, label(Math.max(axes - 1, 0))]], TOP + high * cell + 28);
    if (!single) {
      context.textAlign = "right";
      for (const [y, text] of [[TOP + 6, "0"], [TOP + (high * cell) / 2, label(axes - 2)], [TOP + high * cell - 6, String(rows - 1)]]) {
        context.fillText(text, LEFT - 8, y);
      }
    }
    return things;
  });
  own.canvas.setAttribute("role", "img");
  own.canvas.setAttribute("aria-label", `Map of an array of shape (${shape.join(", ")}) with ${counted(count, "bad element")}`);
}
