// The walls of DESIGN: imports go only downward in this list, and there is no cycle.
const rooms = [
  'cli',
  'studies',
  'watch',
  'report',
  'testing',
  'run',
  'training',
  'recipe',
  'store',
  'agents',
  'rollout',
  'backends',
  'dialects',
  'teams',
  'tasks',
  'advantage',
  'model',
  'tensor',
  'contract',
  'loss',
  'platform',
  'core',
];

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    { name: 'resolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
    ...rooms.slice(1).map((room, i) => ({
      name: `${room}-imports-only-downward`,
      severity: 'error',
      from: { path: `^src/${room}/`, pathNot: '\\.test(-d)?\\.ts$' },
      to: { path: `^src/(${rooms.slice(0, i + 1).join('|')})/` },
    })),
    {
      name: 'the-loop-stands-above-its-parts',
      severity: 'error',
      from: { path: '^src/training/[^/]+/', pathNot: '\\.test(-d)?\\.ts$' },
      to: { path: '^src/training/(train|checkpoint)\\.ts$' },
    },
    {
      name: 'evaluation-warm-start-and-stability-stand-apart',
      comment: 'They look at steps and updates, which do not know them, and not at each other.',
      severity: 'error',
      from: { path: '^src/training/([^/]+)/', pathNot: '\\.test(-d)?\\.ts$|^src/training/step/step-event\\.ts$' },
      to: { path: '^src/training/(evaluation|warm-start|stability)/', pathNot: '^src/training/$1/' },
    },
    {
      name: 'studies-stand-apart',
      comment: 'A probe projects with the token budget of a plan.',
      severity: 'error',
      from: { path: '^src/studies/(ablation|probe|plan|inspect)/', pathNot: '\\.test(-d)?\\.ts$' },
      to: {
        path: '^src/studies/(ablation|probe|plan|inspect)/',
        pathNot: '^src/studies/($1/|plan/token-budget\\.ts$)',
      },
    },
    {
      name: 'nothing-imports-the-index',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/index\\.ts$|\\.test(-d)?\\.ts$' },
      to: { path: '^src/index\\.ts$' },
    },
    {
      name: 'only-tests-import-testing',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/testing/|\\.test(-d)?\\.ts$' },
      to: { path: '^src/testing/' },
    },
    {
      name: 'the-page-reads-what-runs-in-a-browser',
      comment: 'The page of the dashboard shows runs; it needs no Node, and no room that does.',
      severity: 'error',
      from: { path: '^dashboard/src/' },
      to: { path: '^src/', pathNot: '^src/(core|report/analysis)/' },
    },
    {
      name: 'runs-in-a-browser',
      comment: 'A team is to be trained in a browser tab later: these rooms must not need Node.',
      severity: 'error',
      from: { path: '^src/(core|advantage|loss|model|teams|dialects|report/analysis)/', pathNot: '\\.test(-d)?\\.ts$' },
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
