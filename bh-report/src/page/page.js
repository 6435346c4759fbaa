// The parts of the page from its data.

function scaled(value, step, units) {
  let unit = 0;
  while (Math.abs(value) >= step && unit < units.length - 1) { value /= step; unit += 1; }
  const digits = Number.isInteger(value) ? 0 : value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${units[unit]}`.trim();
}
function amount(value) { return scaled(value, 1000, ["", "K", "M", "G", "T", "P"]); }
function size(value) { return scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]); }
function counted(number, noun) { return `${amount(number)} ${noun}${number === 1 ? "" : "s"}`; }
function time(seconds) {
  if (seconds === 0) return "0";
  if (seconds >= 1) return seconds.toFixed(2) + " s";
  if (seconds >= 1e-3) return (seconds * 1e3).toPrecision(3) + " ms";
  return (seconds * 1e6).toPrecision(3) + " µs";
}

function element(name, properties, ...parts) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...parts);
  return made;
}

function body(id) { return document.querySelector(`#${id} .body`); }
function empty(id, text) { body(id).append(element("p", { className: "empty" }, text)); }

function table(heads, rows) {
  const cell = (value) => element("td", { className: typeof value === "string" ? "text" : "" }, typeof value === "string" ? value : value.text);
  const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)));
  return element("div", { className: "wide" }, element("table", {}, element("thead", {}, head), element("tbody", {},
    ...rows.map((row) => element("tr", {}, ...row.map(cell))))));
}

// The wall clock of rank 0 in parts, by the times that components count for themselves. Engines work while the program goes on, so
// the program's own part is the least that it can be. Components report their times when the program ends.
function partsOf(counters, seconds, running) {
  if (running) return [];
  const planners = ["filter", "fuser", "node", "cluster"];
  const parts = { recording: (counters["recorder.record_ns"] ?? 0) * 1e-9, planning: 0, engines: 0 };
  for (const [name, value] of Object.entries(counters)) {
    const component = name.match(/^([^.#]*)(#\d+)?\.own_ns$/);
    if (component) parts[planners.includes(component[1]) ? "planning" : "engines"] += value * 1e-9;
  }
  const rest = Math.max(0, seconds - parts.recording - parts.planning - parts.engines);
  return [...Object.entries(parts), ["program, Python", rest]];
}

function showHead(data) {
  const kernels = data.kernels.reduce((sum, kernel) => sum + kernel.count, 0);
  const operations = data.kernels.reduce((sum, kernel) => sum + kernel.count * kernel.operations.split(", ").length, 0);
  const peak = data.memory.reduce((most, level) => Math.max(most, level[2]), 0);
  const busy = data.kernels.reduce((sum, kernel) => sum + kernel.seconds, 0);
  const parts = partsOf(data.counters[0] ?? {}, data.seconds, data.running).map(([name, value]) => [name, time(value)]);
  const figures = [["wall clock", time(data.seconds)], ...parts, ["in kernels", time(busy)], ["kernels run", amount(kernels)],
    ["operations", amount(operations)], ["most memory", size(peak)], ["ranks", data.counters.length]];
  document.getElementById("program").textContent = data.program;
  document.getElementById("figures").append(...figures.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value))));
  if (data.failure) document.querySelector("header").append(element("p", { className: "finding" }, element("b", {}, data.failure)));
}

// While the program runs, its doctor has not reported yet.
function showFindings(findings, running) {
  if (running) empty("findings", "The doctor's findings follow when the program has ended.");
  else if (findings.length === 0) empty("findings", "Nothing found that slows the program down.");
  for (const { what, advice, place } of findings) {
    const text = element("div", { className: "finding" }, element("b", {}, what), ` – ${advice}`);
    if (place) text.append(element("br"), element("code", {}, place));
    body("findings").append(text);
  }
}

// A kernel by the first of its lines in the program; by its operations if the program has no source.
function titleOf({ label, lines }) {
  const [first, ...others] = lines.filter((line) => line.text);
  if (!first) return label;
  const more = others.length ? ` and ${counted(others.length, "more line")}` : "";
  return `${first.place.split("/").pop()}: ${first.text}${more}`;
}

// A part of the page that few programs have.
function unhide(id) {
  document.getElementById(id).hidden = false;
  document.querySelector(`nav a[href="#${id}"]`).hidden = false;
}

function showBad(bad) {
  if (!bad) return;
  unhide("bad");
  body("bad").append(element("div", { className: "finding" }, element("b", {}, bad.what)));
  drawMap(body("bad"), bad);
}

function showDigits(files) {
  if (!files.length) return;
  unhide("digits");
  for (const { file, lines } of files) {
    const rows = lines.map(({ line, text, digits, of, operation, runs }) => {
      const known = digits !== null;
      const title = known ? `${operation}: ${digits.toFixed(1)} of ${of.toFixed(1)} digits, ${counted(runs, "run")}` : "";
      const row = element("tr", { title }, element("td", {}, String(line)), element("td", {}, known ? digits.toFixed(1) : ""),
        element("td", { className: "code" }, element("code", {}, text)));
      if (known) row.style.setProperty("--lost", Math.round(75 * (1 - digits / of)) + "%");
      return row;
    });
    const heads = ["line", "digits", file].map((text) => element("th", { scope: "col" }, text));
    body("digits").append(element("div", { className: "wide" }, element("table", { className: "lines" },
      element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows))));
  }
}

function showKernels(kernels) {
  if (kernels.length === 0) return empty("kernels", "No kernel ran.");
  const longest = kernels[0].seconds;
  for (const kernel of kernels) {
    const bar = element("span", { className: "bar" });
    bar.style.setProperty("--part", (100 * kernel.seconds) / longest + "%");
    const rate = kernel.bytes ? `, ${size(kernel.bytes / kernel.seconds)}/s` : "";
    const details = element("details", { id: "kernel-" + kernel.number }, element("summary", {},
      element("span", { className: "name" }, titleOf(kernel)),
      element("span", {}, `${time(kernel.seconds)}, ${counted(kernel.count, "run")}, ${counted(kernel.elements, "element")}${rate}`), bar));
    const source = element("div", { className: "source" });
    for (const { place, text } of kernel.lines) source.append(element("span", {}, place), element("code", {}, text ?? ""));
    details.append(source, element("p", { className: "note" }, `Ran ${kernel.how || "on its engine"}. Operations: ${kernel.operations}.`));
    if (kernel.code) details.append(element("pre", {}, kernel.code));
    body("kernels").append(details);
  }
}

function showPrograms(programs) {
  programs.forEach((text, number) => body("kernels").append(element("details", {}, element("summary", {},
    element("span", { className: "name" }, `Device program ${number + 1}`)), element("pre", {}, text))));
}

function showFusion({ batches, left_out }) {
  if (batches.length === 0) empty("fusion", "No batch was planned: each ran operation by operation.");
  batches.filter(({ operations }) => operations > 0).forEach(({ kernels, operations, text }, number) => {
    const head = `Batch ${number + 1}: ${counted(operations, "operation")} in ${counted(kernels, "kernel")}`;
    body("fusion").append(element("details", { open: number === 0 }, element("summary", {}, element("span", { className: "name" }, head)),
      element("pre", {}, text)));
  });
  if (left_out) empty("fusion", `Smaller batches that are left out: ${left_out}.`);
}

function showTransfers(transfers, ranks) {
  const rows = transfers.map(({ kind, count, bytes, seconds }) => [kind, { text: count }, { text: size(bytes) }, { text: time(seconds) }]);
  const sent = ranks.map((counters, rank) => [`rank ${rank}`, { text: counters["cluster.messages"] ?? 0 }, { text: size(counters["cluster.bytes"] ?? 0) },
    { text: time((counters["cluster.wait_ns"] ?? 0) * 1e-9) }]).filter((row) => row[1].text > 0);
  if (rows.length) body("transfers").append(table(["to and from devices", "transfers", "bytes", "time"], rows));
  if (sent.length) body("transfers").append(table(["sent by", "messages", "bytes", "waited"], sent));
  if (!rows.length && !sent.length) empty("transfers", "Nothing was moved between devices or ranks.");
}

function showCounters(ranks) {
  const text = (name, value) => name.endsWith("_ns") ? time(value * 1e-9) : name.includes("bytes") ? size(value) : String(value);
  const names = [...new Set(ranks.flatMap((counters) => Object.keys(counters)))].filter((name) => ranks.some((counters) => counters[name]));
  const rows = names.map((name) => [name, ...ranks.map((counters) => ({ text: text(name, counters[name] ?? 0) }))]);
  body("counters").append(table(["counter", ...ranks.map((_, rank) => ranks.length > 1 ? `rank ${rank}` : "value")], rows));
}

function show(data) {
  showHead(data);
  showFindings(data.findings, data.running);
  showBad(data.bad);
  showDigits(data.digits);
  if (data.timeline.rows.length) drawTimeline(body("timeline"), data.timeline);
  else empty("timeline", "Nothing ran.");
  if (data.timeline.left_out) empty("timeline", `${data.timeline.left_out} short events are not drawn.`);
  showKernels(data.kernels);
  showPrograms(data.programs);
  showFusion(data.fusion);
  const rated = data.kernels.filter((kernel) => !kernel.device && kernel.work > 0 && kernel.bytes > 0 && kernel.seconds > 0);
  if (rated.length && data.roof) drawRoofline(body("roofline"), rated, data.roof);
  else if (data.running) empty("roofline", "The roofs are measured when the program has ended.");
  else empty("roofline", "No kernel on the processors moved memory.");
  if (data.memory.length) drawMemory(body("memory"), data.memory);
  else empty("memory", "Arrays took less than 64 KiB of bh's own memory.");
  showTransfers(data.transfers, data.counters);
  showCounters(data.counters);
}

// The state of the program, and the progress of its batch, if one runs.
function state(text, batch) {
  document.getElementById("state").hidden = false;
  document.getElementById("state").textContent = text;
  const bar = document.getElementById("batch");
  bar.hidden = !batch;
  if (batch) Object.assign(bar, { max: batch.kernels, value: batch.done });
}

// Shows newer data in place of what is shown; what the reader has opened stays open.
function showAgain(data) {
  const name = (details) => details.parentElement.parentElement.id + details.querySelector(".name").textContent;
  const before = new Map([...document.querySelectorAll("details")].map((details) => [name(details), details.open]));
  const top = window.scrollY;
  pictures.length = 0;
  document.querySelectorAll(".body, #figures").forEach((place) => place.replaceChildren());
  document.querySelectorAll("header .finding").forEach((finding) => finding.remove());
  show(data);
  for (const details of document.querySelectorAll("details")) details.open = before.get(name(details)) ?? details.open;
  window.scrollTo(0, top);
}

// Asks for data again and again until the program has ended; the answer to one request comes with the end.
async function watch() {
  const ask = async (path) => (await fetch(location.pathname + path, { cache: "no-store" })).json();
  let last;
  const end = ask("/end").catch(() => null).then((data) => { last = data; return data; });
  for (let running = true; running;) {
    const data = last ?? await ask("/data").catch(() => end);
    if (!data) return state("The program has ended: this is what was seen last.");
    if (data.waiting) state("The program has made no arrays yet.");
    else if (data.failed) return state(data.failed);
    else {
      showAgain(data);
      running = data.running;
      const batch = data.batch ? ` Its batch is at kernel ${data.batch.done} of ${data.batch.kernels}.` : "";
      state(running ? "The program is running." + batch : "The program has ended.", running && data.batch);
    }
    if (running) await Promise.race([end, new Promise((wake) => setTimeout(wake, 1000))]);
  }
}
