/** usage: tsx codemod.mts ROOT : moves src/base, src/engine, native, python into packages/engine and rewrites imports */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync, readdirSync, statSync, cpSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { createRequire } from 'node:module';
const here = import.meta.dirname;
const root = process.argv[2]!;
const ts = createRequire(join(root, 'package.json'))('typescript') as typeof import('typescript');
process.chdir(root);
execFileSync('python3', [join(here, 'doors.py'), root]); execFileSync('git', ['add', '-A', '.']);
const git = (...a: string[]) => execFileSync('git', a, { encoding: 'utf8', maxBuffer: 1 << 28 });
const files = git('ls-files').split('\n').filter(Boolean);
const isDoorOfBase = /^src\/base\/([^/]+\.ts)$/;
const RENAMED: Record<string, string> = {
  'src/engine/library/index.ts': 'packages/engine/src/index.ts',
  'src/engine/embedded.ts': 'packages/engine/src/node.ts',
  'src/engine/tensor.ts': 'packages/engine/src/kernels.ts',
  'src/engine/runtime.ts': 'packages/engine/src/embedded.ts',
};
function moved(p: string): string {
  if (RENAMED[p]) return RENAMED[p];
  let m;
  if ((m = isDoorOfBase.exec(p)) && !/\.test/.test(p)) return `packages/engine/src/${m[1]}`;
  if (p === 'src/base' || p.startsWith('src/base/')) return `packages/engine/${p}`;
  if (p === 'src/engine' || p.startsWith('src/engine/')) return p.replace('src/engine', 'packages/engine/src');
  for (const d of ['native', 'python']) if (p === d || p.startsWith(`${d}/`)) return `packages/engine/${p}`;
  return p;
}
const inPackage = (p: string) => moved(p) !== p;
const isSource = (p: string) => /\.(ts|tsx|mts|vue)$/.test(p);
const text = new Map<string, string>();
const read = (p: string) => { let t = text.get(p); if (t === undefined) { t = readFileSync(p, 'utf8'); text.set(p, t); } return t; };
const fileSet = new Set(files);
const target = (from: string, spec: string): string | undefined => {
  const p = normalize(join(dirname(from), spec)).replace(/\/$/, '');
  const q = p.replace(/\?.*$/, '');
  if (fileSet.has(q)) return q;
  for (const [a, b] of [['.js', '.ts'], ['.js', '.tsx'], ['.mjs', '.mts']] as const)
    if (q.endsWith(a) && fileSet.has(q.slice(0, -a.length) + b)) return q.slice(0, -a.length) + b;
  if (existsSync(q) && statSync(q).isDirectory() && files.some((f) => f.startsWith(`${q}/`))) return q;
  return undefined;
};
// ---- exports of package files (old paths); doors from overlay if present
type Ex = { names: Map<string, { from: string; name: string } | 'own'>; stars: string[] };
const exCache = new Map<string, Ex>();
function exportsOf(file: string): Ex {
  const c = exCache.get(file); if (c) return c;
  const src = ts.createSourceFile(file, read(file), ts.ScriptTarget.Latest, true);
  const ex: Ex = { names: new Map(), stars: [] };
  exCache.set(file, ex);
  const imported = new Map<string, { from: string; name: string }>();
  for (const s of src.statements) if (ts.isImportDeclaration(s) && ts.isStringLiteral(s.moduleSpecifier)) {
    const t = target(file, s.moduleSpecifier.text); const nb = s.importClause?.namedBindings;
    if (t && nb && ts.isNamedImports(nb)) for (const e of nb.elements) imported.set(e.name.text, { from: t, name: (e.propertyName ?? e.name).text });
  }
  for (const s of src.statements) {
    if (ts.isExportDeclaration(s)) {
      if (s.moduleSpecifier && ts.isStringLiteral(s.moduleSpecifier)) {
        const t = target(file, s.moduleSpecifier.text);
        if (!t) continue;
        if (s.exportClause && ts.isNamedExports(s.exportClause)) for (const e of s.exportClause.elements) ex.names.set(e.name.text, { from: t, name: (e.propertyName ?? e.name).text });
        else if (!s.exportClause) ex.stars.push(t);
      } else if (s.exportClause && ts.isNamedExports(s.exportClause)) for (const e of s.exportClause.elements) {
        const i = imported.get((e.propertyName ?? e.name).text);
        ex.names.set(e.name.text, i ?? 'own');
      }
      continue;
    }
    const mods = ts.canHaveModifiers(s) ? ts.getModifiers(s) : undefined;
    if (!mods?.some((m) => m.kind === ts.SyntaxKind.ExportKeyword)) continue;
    if (ts.isVariableStatement(s)) {
      const add = (n: ts.BindingName) => { if (ts.isIdentifier(n)) ex.names.set(n.text, 'own'); else for (const e of n.elements) if (ts.isBindingElement(e)) add(e.name); };
      for (const d of s.declarationList.declarations) add(d.name);
    } else if ((s as any).name) ex.names.set((s as any).name.text, 'own');
  }
  return ex;
}
function origin(file: string, name: string): string {
  const ex = exportsOf(file); const e = ex.names.get(name);
  if (e === 'own') return `${file}#${name}`;
  if (e) return inPackage(e.from) ? origin(e.from, e.name) : `${e.from}#${e.name}`;
  if (file === 'src/engine/backends.ts') for (const f of ['src/engine/runtime.ts', 'src/engine/endpoints.ts']) { const o = origin(f, name); if (o) return o; }
  for (const s of ex.stars) { const o = origin(s, name); if (o) return o; }
  return '';
}
// overlay doors: written with the OLD relative places is awkward, so overlays are old-path files applied before reading
const overlay = join(here, 'overlay');
const walk = (d: string): string[] => readdirSync(d, { withFileTypes: true }).flatMap((e) => e.isDirectory() ? walk(join(d, e.name)) : [join(d, e.name)]);
if (existsSync(overlay)) for (const f of walk(overlay)) { const p = relative(overlay, f); mkdirSync(dirname(p), { recursive: true }); cpSync(f, p); git('add', p); if (!fileSet.has(p)) { files.push(p); fileSet.add(p); } }
const REMOVED = ['src/base/async.ts'].filter((f) => fileSet.has(f));
const doorsInOrder = ['base/errors', 'base/nouns', 'base/events', 'base/math', 'base/host', 'base/disk', 'base/platform', 'engine/contract', 'engine/loss', 'engine/backends', 'engine/endpoints', 'engine/tool-calls', 'engine/tokens', 'engine/tensor', 'engine/model', 'engine/runtime', 'engine/formats', 'engine/embedded', 'engine/library/index'].map((d) => `src/${d}.ts`).filter((d) => fileSet.has(d));
const specOf = (door: string) => { const n = moved(door).replace('packages/engine/src/', '').replace(/\.ts$/, ''); return n === 'index' ? '@drmas/engine' : `@drmas/engine/${n}`; };
const doorOf = new Map<string, { spec: string; name: string }>();
for (const d of doorsInOrder) for (const n of exportsOf(d).names.keys()) { const o = origin(d, n); if (o && !doorOf.has(o)) doorOf.set(o, { spec: specOf(d), name: n }); }
const isDoor = (p: string) => doorsInOrder.includes(p);
const moduleSpec = (p: string) => {
  if (isDoor(p)) return specOf(p);
  if (p.startsWith('native') || p.startsWith('python')) return undefined;
  return `@drmas/engine/internal/${moved(p).replace('packages/engine/src/', '').replace(/\.tsx?$/, '')}`;
};
const rel = (from: string, to: string) => { const r = relative(dirname(from), to); return r.startsWith('.') ? r : `./${r}`; };
const report = new Set<string>();
type Piece = { imported: string; local: string; type: boolean };
function rewrite(file: string): string {
  const before = read(file);
  let body = before, offset = 0;
  if (file.endsWith('.vue')) { const m = /<script[^>]*>\n?/.exec(before); if (!m) return before; offset = m.index + m[0].length; body = before.slice(offset, before.indexOf('</script>', offset)); }
  const kind = file.endsWith('x') ? ts.ScriptKind.TSX : ts.ScriptKind.TS;
  const src = ts.createSourceFile(file, body, ts.ScriptTarget.Latest, true, kind);
  const edits: { start: number; end: number; with: string }[] = [];
  const here = moved(file); const fileIn = inPackage(file);
  const groups = new Map<string, Piece[]>();
  let firstImport: { start: number; end: number } | undefined;
  const handled = new Set<ts.Node>();
  const place = (t: string, name: string): { spec: string; name: string } => {
    const o = origin(t, name);
    const d = o ? doorOf.get(o) : undefined;
    if (d) return d;
    const f = o ? o.split('#')[0]! : t; const n = o ? o.split('#')[1]! : name;
    const s = moduleSpec(f)!;
    if (!/\.test|^test\/|^bench\/|^research\/|^scripts\//.test(file)) report.add(`${file}: ${n} of ${f}`);
    return { spec: s, name: n };
  };
  for (const s of src.statements) {
    if ((ts.isImportDeclaration(s) || ts.isExportDeclaration(s)) && s.moduleSpecifier && ts.isStringLiteral(s.moduleSpecifier)) {
      handled.add(s.moduleSpecifier);
      const spec = s.moduleSpecifier.text;
      if (!spec.startsWith('.')) continue;
      const t = target(file, spec);
      if (!t) continue;
      if (fileIn && (inPackage(t) || !inPackage(t))) {
        // by names through base's removed doors
        if (REMOVED.includes(t)) {
          const nb = ts.isImportDeclaration(s) ? s.importClause?.namedBindings : undefined;
          void nb;
          const nt = 'src/base/host.ts';
          edits.push({ start: s.moduleSpecifier.getStart(), end: s.moduleSpecifier.end, with: `'${rel(here, moved(nt)).replace(/\.ts$/, '.js')}'` });
          continue;
        }
        const suffix = spec.includes('?') ? spec.slice(spec.indexOf('?')) : '';
        const n = rel(here, moved(t)).replace(/\.tsx?$/, '.js') + suffix;
        const n2 = /\.(ts|tsx)$/.test(spec) ? rel(here, moved(t)) : n;
        if (n2 !== spec) edits.push({ start: s.moduleSpecifier.getStart(), end: s.moduleSpecifier.end, with: `'${n2}'` });
        continue;
      }
      if (!inPackage(t)) continue;
      if (t.startsWith('native') || t.startsWith('python')) {
        const suffix = spec.includes('?') ? spec.slice(spec.indexOf('?')) : '';
        edits.push({ start: s.moduleSpecifier.getStart(), end: s.moduleSpecifier.end, with: `'${rel(here, moved(t)).replace(/\.ts$/, '.js')}${suffix}'` });
        continue;
      }
      if (ts.isImportDeclaration(s)) {
        const c = s.importClause; const nb = c?.namedBindings;
        if (c && !c.name && nb && ts.isNamedImports(nb)) {
          for (const e of nb.elements) {
            const imported = (e.propertyName ?? e.name).text;
            const d = place(t, imported);
            groups.set(d.spec, [...(groups.get(d.spec) ?? []), { imported: d.name, local: e.name.text, type: c.isTypeOnly || e.isTypeOnly }]);
          }
          let end = s.end; if (body[end] === '\n') end++;
          if (firstImport) edits.push({ start: s.getStart(), end, with: '' });
          else { firstImport = { start: s.getStart(), end }; }
        } else edits.push({ start: s.moduleSpecifier.getStart(), end: s.moduleSpecifier.end, with: `'${moduleSpec(t)}'` });
      } else if (s.exportClause && ts.isNamedExports(s.exportClause)) {
        const by = new Map<string, Piece[]>();
        for (const e of s.exportClause.elements) {
          const d = place(t, (e.propertyName ?? e.name).text);
          by.set(d.spec, [...(by.get(d.spec) ?? []), { imported: d.name, local: e.name.text, type: s.isTypeOnly || e.isTypeOnly }]);
        }
        edits.push({ start: s.getStart(), end: s.end, with: [...by].map(([k, v]) => statement('export', k, v)).join('\n') });
      } else edits.push({ start: s.moduleSpecifier.getStart(), end: s.moduleSpecifier.end, with: `'${moduleSpec(t)}'` });
    }
  }
  if (firstImport) edits.push({ ...firstImport, with: `${[...groups].map(([k, v]) => statement('import', k, v)).join('\n')}\n` });
  const visit = (n: ts.Node) => {
    let s: { text: string; start: number; end: number; quote: string; head: boolean } | undefined;
    if (ts.isStringLiteral(n) && !handled.has(n)) s = { text: n.text, start: n.getStart(), end: n.end, quote: body[n.getStart()]!, head: false };
    else if (ts.isNoSubstitutionTemplateLiteral(n)) s = { text: n.text, start: n.getStart(), end: n.end, quote: '`', head: false };
    else if (ts.isTemplateHead(n)) s = { text: n.text, start: n.getStart(), end: n.end, quote: '`', head: true };
    if (s && /^\.{1,2}\//.test(s.text) && !/\s/.test(s.text)) {
      let t: string | undefined, tail = '';
      if (s.head) { const cut = s.text.lastIndexOf('/'); tail = s.text.slice(cut); t = target(file, s.text.slice(0, cut) || '.'); }
      else t = target(file, s.text);
      if (t === undefined && !s.head && s.text.replace(/[./]/g, '') === '') t = normalize(join(dirname(file), s.text)).replace(/\/$/, '');
      if (t !== undefined) {
        const p = n.parent;
        const isModule = (ts.isCallExpression(p) && (p.expression.kind === ts.SyntaxKind.ImportKeyword || /^vi\.|importActual|importOriginal/.test(p.expression.getText()))) || (ts.isLiteralTypeNode(p) && ts.isImportTypeNode(p.parent)) || (ts.isExternalModuleReference(p)) || ts.isModuleDeclaration(p);
        let next: string | undefined;
        if (isModule && !fileIn && inPackage(t)) {
          let by: string | undefined;
          if (ts.isLiteralTypeNode(p) && ts.isImportTypeNode(p.parent) && p.parent.qualifier && ts.isIdentifier(p.parent.qualifier)) by = place(t, p.parent.qualifier.text).spec;
          next = by ?? moduleSpec(t);
        } else if (fileIn || inPackage(t)) {
          const js = /\.js$/.test(s.text) && /\.tsx?$/.test(t);
          next = rel(here, moved(t));
          if (js) next = next.replace(/\.tsx?$/, '.js');
          if (s.text.endsWith('/') && !next.endsWith('/')) next += '/';
          if (s.head) next += tail;
        }
        if (next !== undefined && next !== s.text) edits.push({ start: s.start + 1, end: s.end - (s.head ? 2 : 1), with: next });
      } else if (fileIn) report.add(`UNRESOLVED ${file}: ${s.text}`);
    }
    ts.forEachChild(n, visit);
  };
  visit(src);
  edits.sort((a, b) => b.start - a.start);
  for (const e of edits) body = body.slice(0, e.start) + e.with + body.slice(e.end);
  return file.endsWith('.vue') ? before.slice(0, offset) + body + before.slice(before.indexOf('</script>', offset)) : body;
}
function statement(kind: string, spec: string, pieces: Piece[]): string {
  const seen = new Map(pieces.map((p) => [`${p.imported} ${p.local}`, p]));
  for (const p of pieces) if (!p.type) seen.set(`${p.imported} ${p.local}`, p);
  const all = [...seen.values()]; const types = all.every((p) => p.type);
  const one = (p: Piece) => (!types && p.type ? 'type ' : '') + (p.imported === p.local ? p.local : `${p.imported} as ${p.local}`);
  return `${kind} ${types ? 'type ' : ''}{ ${all.map(one).join(', ')} } from '${spec}';`;
}
const out = new Map<string, string>();
for (const f of files) {
  if (!existsSync(f)) continue;
  if (isSource(f) && !/^test\/frameworks\/node/.test(f)) { const r = rewrite(f); if (r !== read(f)) out.set(f, r); }
}
// ---- texts: paths in comments, strings and documents
const TEXT = /\.(ts|tsx|mts|mjs|cjs|js|vue|md|json|jsonc|yml|yaml|py|h|cpp|toml|ini|sh)$|^\.ci\/run$|^\.gitignore$|Dockerfile/;
const SKIP = /^(package\.json|tsconfig|knip|vitest\.config|\.dependency-cruiser|research\/creditbench\/results|research\/results|docs\/lab-notes\/2|test\/goldens\/(?!README)|package-lock\.json|test\/fixtures\/|CHANGELOG)|package-lock\.json$|^docs\/(recorded-pair|test-vectors)\.json$/;
for (const f of files) {
  if (!existsSync(f) || !TEXT.test(f) || SKIP.test(f) || statSync(f).isDirectory()) continue;
  const now = out.get(f) ?? read(f);
  let n = now
    .replace(/(?<![\w@-])((?:\.\.\/)*)dist\/src\/(?:base|engine)\/([\w./-]*)/g, (_w, up: string, restp: string) => {
      const old = /dist\/src\/base\//.test(_w) ? `src/base/${restp}` : `src/engine/${restp}`;
      const m = moved(old.replace(/\.js$/, '.ts')).replace(/\.ts$/, old.endsWith('.js') ? '.js' : '.ts');
      return `${up}packages/engine/dist/${m.replace('packages/engine/src/', '')}`;
    })
    .replace(/(?<![\w@-]|dist\/|engine\/)((?:\.\.\/|\.\/)*)src\/(base|engine)\b(\/[\w./*-]*)?/g, (w, up: string, room: string, tail = '') => {
      if (room === 'engine' && /^\/engine/.test(tail)) return w;
      const dot = /[.]$/.test(tail) ? '.' : ''; const p = `src/${room}${tail}`.replace(/[.]$/, '');
      return `${up}${moved(p)}${dot}`;
    });
  if (f.endsWith('.md') && !inPackage(f)) n = n.replace(/(?<![\w@/.<-])(native|python)\/(?=(manifest|kernels|generated|simd|wasm|drmas|pool|sleep|bfloat16|processor|every|addon|products|region|blocks|sets?|types|arguments|tests|mypy|ruff|`))/g, (w, _d, _e, i: number, all: string) => (all[i - 1] === '(' ? w : `packages/engine/${w}`));
  else if (!inPackage(f)) n = n.replace(/(['"`])(native|python)\/(?=[\w.$*{}/-]+['"`])/g, '$1packages/engine/$2/');
  if (f === '.ci/suites.mjs') n = n.replace(/'(native|python)'/g, "'packages/engine/$1'");
  if (f.startsWith('test/native/')) n = n.replaceAll('"../../native/', '"../../packages/engine/native/');
  if (inPackage(f) && !/\.test\.ts$/.test(f)) n = n.replaceAll('packages/engine/src/', 'src/').replaceAll('packages/engine/python/', 'python/');
  // relative links of documents: (../native/..)
  if (f.endsWith('.md')) n = n.replace(/\]\(((?:\.\.?\/)*)((?:native|python)\/[^)]*)\)/g, (_w, up, p) => `](${up}packages/engine/${p})`);
  if (n !== now) out.set(f, n);
}
for (const [f, t] of out) writeFileSync(f, t);
// ---- move
for (const f of REMOVED) git('rm', '-qf', f);
const dirs: [string, string][] = [];
mkdirSync('packages/engine/src', { recursive: true });
for (const f of Object.keys(RENAMED)) if (existsSync(f)) git('mv', f, RENAMED[f]!);
for (const room of ['base', 'engine'])
  for (const e of existsSync(`src/${room}`) ? readdirSync(`src/${room}`) : []) {
    const p = `src/${room}/${e}`; const to = moved(p);
    if (!git('ls-files', p).trim()) continue;
    mkdirSync(dirname(to), { recursive: true });
    git('mv', p, to);
  }
for (const d of ['native', 'python']) git('mv', d, `packages/engine/${d}`);
void dirs;
git('add', '-A', '.');
console.log([...report].sort().join('\n'));
