/** The page's style, for dark and light, wide and narrow screens, without external fonts or images. */
export const style = `
:root {
  color-scheme: light dark;
  --back: #fbfbfa; --paper: #ffffff; --ink: #1d1f23; --faint: #666b75; --rule: #d9dbe0; --grid: #e8e9ec;
  --good: #d9f0dd; --bad: #f9dcd9; --mark: #c62828; --link: #1a5fb4;
  --c0: #0b66b0; --c1: #c75000; --c2: #0a8a6a; --c3: #a03c8f; --c4: #8a6d00; --c5: #3b8fc4; --c6: #b3333f; --c7: #5b5f97;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #15171a; --paper: #1d2024; --ink: #e6e7ea; --faint: #9aa0ab; --rule: #3a3f47; --grid: #2b2f36;
    --good: #1d3a25; --bad: #452423; --mark: #ff7b72; --link: #79b8ff;
    --c0: #6cb6ff; --c1: #ff9a4d; --c2: #4fd1ae; --c3: #e58fd6; --c4: #e0c04c; --c5: #9ad1f5; --c6: #ff8f8f; --c7: #b3b6f2;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1500px; padding: 1rem clamp(0.75rem, 3vw, 2.5rem) 4rem; background: var(--back); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 1.5rem; margin: 0.5rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.5rem 0 0.75rem; padding-bottom: 0.25rem; border-bottom: 1px solid var(--rule); }
h3 { font-size: 1rem; margin: 1.5rem 0 0.5rem; }
p { max-width: 75ch; }
a { color: var(--link); }
.faint, .empty { color: var(--faint); }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 21rem), 1fr)); gap: 0.9rem; }
figure { margin: 0; padding: 0.7rem 0.8rem 0.5rem; background: var(--paper); border: 1px solid var(--rule); border-radius: 6px; min-width: 0; }
figcaption { font-weight: 600; font-size: 0.9rem; margin-bottom: 0.3rem; overflow-wrap: anywhere; }
figure svg:not(.swatch) { display: block; width: 100%; height: auto; }
.legend { display: flex; flex-wrap: wrap; gap: 0.1rem 0.9rem; font-weight: 400; font-size: 0.8rem; }
.legend span { display: inline-flex; align-items: center; gap: 0.35rem; }
.swatch { width: 22px; height: 10px; stroke: currentColor; stroke-width: 2.5; }
.c0 { color: var(--c0); } .c1 { color: var(--c1); } .c2 { color: var(--c2); } .c3 { color: var(--c3); }
.c4 { color: var(--c4); } .c5 { color: var(--c5); } .c6 { color: var(--c6); } .c7 { color: var(--c7); }
.series { stroke: currentColor; fill: none; stroke-width: 1.7; stroke-linejoin: round; }
.series circle { fill: currentColor; stroke: none; }
.series .mark { fill: none; stroke: var(--mark); stroke-width: 1.8; }
.areas polygon { fill: currentColor; opacity: 0.55; }
.axes line { stroke: var(--grid); stroke-width: 1; }
.axes text { fill: var(--faint); font-size: 10.5px; }
.reference { stroke: var(--faint); stroke-dasharray: 4 4; }
.scroll { overflow-x: auto; margin: 0.5rem 0; }
table { border-collapse: collapse; font-size: 0.88rem; font-variant-numeric: tabular-nums; background: var(--paper); }
th, td { padding: 0.28rem 0.7rem; border: 1px solid var(--rule); text-align: right; vertical-align: top; }
th[scope=row], thead th:first-child { text-align: left; }
td { white-space: nowrap; }
.facts td, .facts th { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 7rem; }
tbody th { font-weight: 500; overflow-wrap: anywhere; max-width: 24rem; }
thead th { font-weight: 600; background: var(--back); }
details { margin: 0.5rem 0; }
summary { cursor: pointer; }
pre { margin: 0.3rem 0; white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: plaintext; font: 0.83rem/1.45 ui-monospace, "Cascadia Mono", Menlo, Consolas, monospace; }
.controls { display: flex; flex-wrap: wrap; gap: 0.5rem 0.8rem; align-items: center; margin: 0.7rem 0; }
.controls label { display: inline-flex; gap: 0.35rem; align-items: center; font-size: 0.85rem; max-width: 100%; }
select, button { font: inherit; font-size: 0.88rem; max-width: 20rem; padding: 0.2rem 0.4rem; color: var(--ink); background: var(--paper); border: 1px solid var(--rule); border-radius: 4px; }
.task { background: var(--paper); border: 1px solid var(--rule); border-radius: 6px; padding: 0.5rem 0.8rem; }
.episode { margin: 0.8rem 0; padding: 0.5rem 0.8rem 0.7rem; background: var(--paper); border: 1px solid var(--rule); border-radius: 6px; }
.episode h3 { margin: 0.1rem 0 0.5rem; }
.turn { border-left: 5px solid var(--rule); padding: 0.35rem 0.7rem; margin: 0.35rem 0; border-radius: 0 4px 4px 0; }
.turn.good { background: var(--good); border-left-color: var(--c2); }
.turn.bad { background: var(--bad); border-left-color: var(--c6); }
.turn .what { font-size: 0.82rem; color: var(--faint); display: flex; flex-wrap: wrap; gap: 0 0.9rem; }
.turn .what b { color: var(--ink); }
.turn details { font-size: 0.82rem; }
@media print { .controls { display: none; } body { max-width: none; } }
`;
