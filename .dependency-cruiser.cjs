const { readdirSync, readFileSync } = require('node:fs');

// The walls: imports go downward in this list of rooms, through doors alone, and never in a circle. A room's doors are
// the files directly in its folder (docs/decisions/075-twelve-rooms-with-doors-one-package.md). `npm run house` measures the rest.
const rooms = ['public', 'cli', 'dashboard', 'serve', 'runs', 'lab', 'cluster', 'method', 'gateway', 'teams'];
/** The packages below the rooms of drmas, which npm publishes. */
const libraries = readdirSync('packages').filter(
  (name) => !JSON.parse(readFileSync(`packages/${name}/package.json`, 'utf8')).private,
);
/** What they do not know. */
const ABOVE = '^(src|recipes|apps|packages/dashboard)/';
/** The doors of the engine that a page for people needs: values and texts, no kernels. */
const PAGE_DOORS = '^packages/engine/src/(errors|events|host|math|nouns)\\.ts$';

const TEST = '\\.test(-d)?\\.ts$';
const inside = '^src/[^/]+/[^/]+/';

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    { name: 'resolvable', severity: 'error', from: {}, to: { couldNotResolve: true, pathNot: '\\?url$' } },
    ...rooms.slice(1).map((room, i) => ({
      name: `${room}-imports-only-downward`,
      severity: 'error',
      from: { path: `^src/${room}/`, pathNot: TEST },
      to: { path: `^src/(${rooms.slice(0, i + 1).join('|')})/` },
    })),
    {
      name: 'rooms-have-doors',
      comment:
        'Another room is entered through a file directly in its folder. The names of the package are taken from where ' +
        'they are written, so that a plug-in of ten lines loads no room (src/public/loaded-files.test.ts).',
      severity: 'error',
      from: { path: '^src/([^/]+)/', pathNot: `^src/public/|${TEST}` },
      to: { path: inside, pathNot: '^src/$1/' },
    },
    {
      name: 'programs-use-doors',
      severity: 'error',
      from: { path: '^src/index\\.ts$|^packages/dashboard/src/|^apps/site/src/', pathNot: TEST },
      to: { path: inside },
    },
    {
      name: 'the-inside-does-not-use-its-own-doors',
      comment: 'A door imports the inside, so an import back would be a circle.',
      severity: 'error',
      from: { path: '^src/([^/]+)/[^/]+/', pathNot: `^src/cli/|${TEST}` },
      to: { path: '^src/$1/[^/]+\\.ts$' },
    },
    {
      name: 'the-loop-stands-above-its-parts',
      severity: 'error',
      from: { path: '^src/method/training/[^/]+/', pathNot: TEST },
      to: { path: '^src/method/training/(train|checkpoint)\\.ts$' },
    },
    {
      name: 'training-learns-below-its-watchers',
      comment: 'Playing and learning do not know the state of a run, its records, evaluations and warnings.',
      severity: 'error',
      from: { path: '^src/method/training/(samples|run|play|signals|advantages|update)/', pathNot: TEST },
      to: { path: '^src/method/training/(stability|record|state|step|evaluation|warm-start)/' },
    },
    {
      name: 'evaluation-and-warm-start-stand-apart',
      severity: 'error',
      from: { path: '^src/method/training/([^/]+)/', pathNot: TEST },
      to: { path: '^src/method/training/(evaluation|warm-start)/', pathNot: '^src/method/training/$1/' },
    },
    {
      name: 'studies-stand-apart',
      severity: 'error',
      from: { path: '^src/runs/studies/(ablation|plan|inspect)/', pathNot: TEST },
      to: { path: '^src/runs/studies/(ablation|plan|inspect)/', pathNot: '^src/runs/studies/$1/' },
    },
    {
      name: 'nothing-imports-the-index',
      severity: 'error',
      from: { path: '^src/', pathNot: `^src/index\\.ts$|${TEST}` },
      to: { path: '^src/index\\.ts$' },
    },
    {
      name: 'recipes-use-the-package',
      comment: 'A shipped recipe and its world import what a recipe of a user can import.',
      severity: 'error',
      from: { path: '^recipes/', pathNot: TEST },
      to: { path: '^src/', pathNot: '^src/(index|public/[^/]+)\\.ts$' },
    },
    {
      name: 'the-package-does-not-use-recipes',
      severity: 'error',
      from: { path: '^src/', pathNot: TEST },
      to: { path: '^recipes/' },
    },
    {
      name: 'only-tests-import-testing',
      severity: 'error',
      from: { path: '^src/', pathNot: `^src/runs/testing(/|\\.ts$)|^src/public/|${TEST}` },
      to: { path: '^src/runs/testing(/|\\.ts$)' },
    },
    {
      name: 'the-engine-knows-nothing-above',
      severity: 'error',
      from: { path: '^packages/engine/', pathNot: TEST },
      to: { path: `${ABOVE}|^packages/(${libraries.filter((name) => name !== 'engine').join('|')})/` },
    },
    {
      name: 'other-libraries-know-the-engine-alone',
      severity: 'error',
      from: { path: `^packages/(${libraries.filter((name) => name !== 'engine').join('|')})/`, pathNot: TEST },
      to: { path: `${ABOVE}|^packages/(?!engine/|$1/)` },
    },
    {
      name: 'tests-of-the-engine-know-nothing-above',
      severity: 'error',
      from: { path: '^packages/engine/' },
      to: { path: '^(src|recipes|apps)/' },
    },
    {
      name: 'base-is-below-the-engine',
      severity: 'error',
      from: { path: '^packages/engine/src/base/', pathNot: TEST },
      to: { path: '^packages/engine/src/', pathNot: '^packages/engine/src/base/' },
    },
    {
      name: 'packages-are-entered-by-name',
      comment: 'A package of the workspace is imported by its name, so its exports are all that others can take.',
      severity: 'error',
      from: { path: '^(src|recipes|apps|packages/([^/]+))/' },
      to: { path: '^packages/', pathNot: '^packages/$2/', dependencyTypes: ['local'], dependencyTypesNot: ['aliased'] },
    },
    {
      name: 'libraries-are-entered-through-their-doors',
      comment: 'Tests, and what only this repository has, may look inside: `@drmas/engine/internal/...`.',
      severity: 'error',
      from: { path: '^(src|recipes|apps|packages/([^/]+))/', pathNot: TEST },
      to: { path: `^packages/(${libraries.join('|')})/src/[^/]+/`, pathNot: '^packages/$2/' },
    },
    {
      name: 'the-page-reads-what-runs-in-a-browser',
      comment: 'The page of the dashboard shows runs; it needs neither Node nor a room that needs Node.',
      severity: 'error',
      from: { path: '^packages/dashboard/src/' },
      to: { path: '^(src|packages/engine/src)/', pathNot: `^src/runs/analysis|${PAGE_DOORS}` },
    },
    {
      name: 'the-site-is-two-programs',
      comment: 'The worker trains with the rooms of src. The page knows its messages, and how to show numbers.',
      severity: 'error',
      from: { path: '^apps/site/src/page/', pathNot: '\\.test\\.ts$' },
      to: { path: '^(src|packages/engine/src)/', pathNot: PAGE_DOORS },
    },
    {
      name: 'runs-in-a-browser',
      comment: 'A team trains in a browser tab, so these places must not need Node.',
      severity: 'error',
      from: {
        path: '^src/(method/advantage|teams/team|gateway/dialects|runs/analysis)/|^packages/engine/src/(base/core|loss|model|contract)/',
        pathNot: TEST,
      },
      to: { dependencyTypes: ['core'] },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'types'] },
  },
};
