"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);

  // Light or dark: the system's choice until the reader makes one.
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const theme = byId("theme");
  const showTheme = () => theme.setAttribute("aria-pressed", String(isDark()));
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    showTheme();
  });
  system.addEventListener("change", showTheme);
  showTheme();

  // The menu of a narrow screen closes when it has been used.
  const menu = byId("contents");
  menu.addEventListener("click", (event) => event.target.closest("a") && (menu.open = false));
  document.addEventListener("click", (event) => menu.contains(event.target) || (menu.open = false));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });

  // Tables: a click on a heading sorts by it, another one the other way round. Equal rows keep their order.
  const compare = (a, b) => {
    const [x, y] = [a.dataset.value, b.dataset.value];
    return x !== undefined && y !== undefined ? x - y : a.textContent.localeCompare(b.textContent);
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      head.querySelector("button").addEventListener("click", () => {
        const rising = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((other) => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", rising ? "ascending" : "descending");
        const rows = [...table.tBodies[0].rows];
        rows.sort((a, b) => (rising ? 1 : -1) * compare(a.cells[column], b.cells[column]));
        table.tBodies[0].append(...rows);
      });
    });
  }

  // The slider: every number is looked up, none is interpolated.
  const rate = byId("rate");
  const typed = byId("rate-number");
  const steps = data.kept.length - 1;
  const samples = data.kept[0];
  const percent = (part, whole, digits) => `${((100 * part) / whole).toFixed(digits)}\u00a0%`;
  const show = (step, fromTyping) => {
    const kept = data.kept[step];
    const right = data.right[step];
    const limit = data.limits[step];
    const accuracy = kept ? percent(right, kept, 2) : "none left";
    const answered = `${percent(kept, samples, 1)}`;
    const above = limit !== null ? String(limit) : kept ? "never" : "always";
    byId("accuracy").textContent = accuracy;
    byId("kept").textContent = answered;
    byId("kept-count").textContent = `${kept.toLocaleString("en")} of ${samples.toLocaleString("en")} samples`;
    byId("accuracy-count").textContent = kept ? `${(kept - right).toLocaleString("en")} wrong` : "";
    byId("limit").textContent = above;
    data.ood.forEach((rejected, i) => {
      byId(`ood-${i}`).textContent = percent(rejected[step], data.sizes[i], 1);
    });
    rate.value = step;
    if (!fromTyping) typed.value = ((100 * step) / steps).toFixed(1);
    const asked = percent(step, steps, 1);
    rate.setAttribute("aria-valuetext", `${asked} rejected: accuracy ${accuracy}, answered ${answered}, abstain above EU ${above}`);
    const x = 1000 * (1 - kept / samples);
    const { low, high } = byId("dot").dataset;
    const y = 1000 * (1 - ((kept ? right / kept : 1) - low) / (high - low));
    byId("dot").setAttribute("d", `M${x} ${y}h0.01`);
    for (const end of ["x1", "x2"]) byId("cursor").setAttribute(end, x);
    const at = limit === null ? -10 : (1000 * limit) / data.top;
    for (const end of ["x1", "x2"]) byId("eu-cursor").setAttribute(end, at);
  };
  rate.addEventListener("input", () => show(Number(rate.value), false));
  typed.addEventListener("input", () => {
    if (typed.value === "" || !typed.validity.valid) return;
    show(Math.round((Number(typed.value) / 100) * steps), true);
  });
  const drawing = document.querySelector("#rejection svg");
  const pointed = (event) => {
    const box = drawing.getBoundingClientRect();
    const part = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    show(Math.round(part * steps), false);
  };
  drawing.addEventListener("pointerdown", pointed);
  drawing.addEventListener("pointermove", (event) => event.buttons === 1 && pointed(event));
  for (const goal of document.querySelectorAll("button.goal")) {
    goal.addEventListener("click", () => show(Number(goal.dataset.step), false));
  }
  show(Number(rate.value), false);

  // The simplex of three classes.
  const choice = byId("choice");
  if (choice) {
    const points = (list) => list.map((p) => p.join(",")).join(" ");
    const cells = [...document.querySelectorAll("#chosen-bounds tbody tr")].map((row) => [...row.querySelectorAll("td")]);
    const members = document.querySelectorAll("svg.simplex .member");
    const draw = () => {
      const sample = data.simplex[choice.value];
      byId("credal").setAttribute("points", points(sample.set));
      sample.members.forEach(([x, y], i) => {
        members[i].setAttribute("cx", x);
        members[i].setAttribute("cy", y);
      });
      const [x, y] = sample.mean;
      byId("centre").setAttribute("d", `M${x - 5} ${y - 5}l10 10m0 -10l-10 10`);
      sample.bounds.forEach((row, k) => row.forEach((text, j) => (cells[k][j].textContent = text)));
      const said = choice.selectedOptions[0].textContent;
      byId("chosen").textContent = said;
      byId("simplex-desc").textContent = `${said}. The bounds are in the table beside it.`;
    };
    const move = (by) => {
      choice.selectedIndex = (choice.selectedIndex + by + choice.length) % choice.length;
      draw();
    };
    choice.addEventListener("change", draw);
    byId("previous").addEventListener("click", () => move(-1));
    byId("next").addEventListener("click", () => move(1));
    draw();
  }
})();
