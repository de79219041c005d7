// The maps of a row are of one mesh: they show one window. Without this script, they show the whole mesh.
for (const row of document.querySelectorAll(".maps")) {
  const make = (name, parent) => parent.appendChild(document.createElementNS(parent.namespaceURI, name));
  const maps = [...row.querySelectorAll("svg[data-window]")].map(svg => {
    const axes = svg.querySelector("[id$='-map']"), contents = [];
    const [x, y, width, height] = svg.dataset.box.split(" ").map(Number);
    // What is drawn as an image, for its many elements, has no clip path.
    for (const drawn of [...axes.children].filter(child => child.matches("image, [clip-path]") || child.querySelector("[clip-path]"))) {
      const frame = make("svg", axes);
      for (const [name, value] of Object.entries({ x, y, width, height })) frame.setAttribute(name, value);
      frame.setAttribute("viewBox", svg.dataset.box);
      drawn.replaceWith(frame);
      for (const part of [drawn, ...drawn.querySelectorAll("[clip-path]")]) part.removeAttribute("clip-path");
      // An image has a transformation of its own.
      contents.push(make("g", frame));
      contents.at(-1).append(drawn);
    }
    const [x0, x1, y0, y1] = svg.dataset.window.split(" ").map(Number);
    const sides = [{ from: x, to: x + width, low: x0, high: x1 }, { from: y + height, to: y, low: y0, high: y1 }];
    sides.forEach((side, i) => { side.ticks = [...axes.querySelectorAll(`[id*='-${"xy"[i]}tick_']`)]; side.new = []; });
    return { svg, contents, x, y, width, height, sides };
  });
  if (!maps.length) continue;

  // Left and upper end of the window and its size, as parts of the map.
  let left = 0, top = 0, size = 1;
  const short = value => String(Number(value.toPrecision(3)));
  const show = () => {
    size = Math.min(1, Math.max(1 / 64, size));
    left = Math.min(1 - size, Math.max(0, left));
    top = Math.min(1 - size, Math.max(0, top));
    for (const map of maps) {
      const offset = [map.x - (map.x + left * map.width) / size, map.y - (map.y + top * map.height) / size];
      for (const content of map.contents) {
        content.setAttribute("transform", `matrix(${1 / size} 0 0 ${1 / size} ${offset})`);
        // Marks keep their size.
        for (const mark of content.querySelectorAll("use")) {
          const x = Number(mark.getAttribute("x")), y = Number(mark.getAttribute("y"));
          mark.setAttribute("transform", `translate(${x} ${y}) scale(${size}) translate(${-x} ${-y})`);
        }
      }
      map.sides.forEach((side, i) => tick(side, i, i ? 1 - top - size : left));
      map.svg.style.touchAction = size < 1 ? "none" : "pan-x pan-y";
      map.svg.style.cursor = size < 1 ? "grab" : "";
    }
    const [x, y] = maps[0].sides;
    said.textContent = size < 1 ? `x from ${short(x.start)} to ${short(x.end)}, y from ${short(y.start)} to ${short(y.end)}` : "";
    whole.disabled = out.disabled = size === 1;
  };
  // Numbers along a side of the window: those of the whole map, or new ones.
  const tick = (side, i, part) => {
    const length = side.high - side.low, places = ["x", "y"];
    side.start = side.low + part * length;
    side.end = side.start + size * length;
    side.new.splice(0).forEach(mark => mark.remove());
    for (const mark of side.ticks) mark.style.display = size < 1 ? "none" : "";
    if (size === 1) return;
    const most = Math.max(1, Math.min(4, Math.floor(Math.abs(side.to - side.from) / 14)));
    const rough = size * length / most, power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find(n => n * power >= rough), model = side.ticks[0];
    const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    for (let n = Math.ceil(side.start / step); n * step <= side.end; n++) {
      const mark = model.cloneNode(true), old = Number(model.querySelector("use").getAttribute(places[i]));
      const shift = side.from + (n * step - side.start) / (side.end - side.start) * (side.to - side.from) - old;
      mark.style.display = "";
      for (const part of [mark, ...mark.querySelectorAll("[id]")]) part.removeAttribute("id");
      mark.setAttribute("transform", `translate(${i ? [0, shift] : [shift, 0]})`);
      mark.querySelector("text").textContent = (n * step).toFixed(decimals);
      side.new.push(mark);
      model.before(mark);
    }
  };
  // By a factor about a point of the window, given as parts of it.
  const zoom = (factor, u = 0.5, v = 0.5) => {
    const next = Math.min(1, Math.max(1 / 64, size / factor));
    left += u * (size - next);
    top += v * (size - next);
    size = next;
    show();
  };
  const move = (u, v) => { left += u * size; top += v * size; show(); };

  const bar = document.createElement("p");
  bar.className = "zoom soft";
  const button = (sign, words, act) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = sign;
    made.title = made.ariaLabel = words;
    made.addEventListener("click", act);
    bar.append(made);
    return made;
  };
  button("+", "Zoom in; arrow keys move", () => zoom(2));
  const out = button("−", "Zoom out", () => zoom(0.5));
  const whole = button("Whole map", "Show the whole map", () => zoom(0));
  const said = bar.appendChild(document.createElement("span"));
  said.role = "status";
  bar.addEventListener("keydown", event => {
    const act = {
      "+": () => zoom(2), "-": () => zoom(0.5), "0": () => zoom(0), Escape: () => zoom(0), ArrowLeft: () => move(-0.25, 0),
      ArrowRight: () => move(0.25, 0), ArrowUp: () => move(0, -0.25), ArrowDown: () => move(0, 0.25),
    }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
  row.before(bar);

  for (const map of maps) {
    const fingers = new Map(), box = map.svg.viewBox.baseVal;
    const place = event => {
      const seen = map.svg.getBoundingClientRect(), scale = box.width / seen.width;
      return [((event.clientX - seen.left) * scale - map.x) / map.width, ((event.clientY - seen.top) * scale - map.y) / map.height];
    };
    map.svg.addEventListener("wheel", event => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoom(Math.exp(-event.deltaY / 200), ...place(event));
    }, { passive: false });
    map.svg.addEventListener("dblclick", event => zoom(2, ...place(event)));
    map.svg.addEventListener("pointerdown", event => {
      fingers.set(event.pointerId, place(event));
      map.svg.setPointerCapture(event.pointerId);
    });
    for (const end of ["pointerup", "pointercancel"]) map.svg.addEventListener(end, event => fingers.delete(event.pointerId));
    map.svg.addEventListener("pointermove", event => {
      const [a, b] = fingers.get(event.pointerId) ?? [], now = place(event);
      if (a === undefined) return;
      fingers.set(event.pointerId, now);
      const other = [...fingers].find(([id]) => id !== event.pointerId)?.[1];
      if (other) zoom(Math.hypot(now[0] - other[0], now[1] - other[1]) / Math.max(1e-3, Math.hypot(a - other[0], b - other[1])), ...other);
      else if (size < 1) move(a - now[0], b - now[1]);
    });
  }
  show();
}
