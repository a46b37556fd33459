/** The home page: what drmas is, a recorded pair of runs that plays by itself, and three ways in. */
import { withBase } from 'vitepress';
import { computed, defineComponent, h, onBeforeUnmount, onMounted, ref } from 'vue';
import pair from '../../../../../docs/recorded-pair.json';

/** The seconds in which the recorded steps play. */
const SECONDS = 15;
const WIDTH = 520;
const HEIGHT = 220;
/** The room beside the curves, for the labels of the axes. */
const LEFT = 48;
const RIGHT = 20;
const BOTTOM = 22;
const steps = pair.runs[0]?.success.length ?? 0;

const x = (step: number) => LEFT + ((WIDTH - LEFT - RIGHT) * step) / steps;
const y = (share: number) => 8 + (HEIGHT - 8 - BOTTOM) * (1 - share);
const percent = (share: number) => `${(100 * share).toFixed(0)} %`;

/** The curves of both runs up to a step, over axes from 0 to 100 %. */
function chart(step: number) {
  const grid = [0, 0.5, 1].flatMap((share) => [
    h('line', { class: 'grid', x1: LEFT, x2: WIDTH - RIGHT, y1: y(share), y2: y(share) }),
    h('text', { x: LEFT - 6, y: y(share) + 4, 'text-anchor': 'end' }, percent(share)),
  ]);
  const ticks = [0, 50, 100, 150].map((each) =>
    h('text', { x: x(each), y: HEIGHT - 4, 'text-anchor': 'middle' }, each === 0 ? 'step 0' : String(each)),
  );
  const curves = pair.runs.map(({ success }, i) =>
    h('polyline', {
      class: `curve run-${i}`,
      points: success
        .slice(0, step)
        .map((share, at) => `${x(at + 1)},${y(share)}`)
        .join(' '),
    }),
  );
  return h('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, 'aria-hidden': 'true' }, [...grid, ...ticks, ...curves]);
}

/** One run at a step: its success, and the names that its fixer has found. */
function standing({ name, success, found, turns }: (typeof pair.runs)[number], i: number, step: number) {
  const marks = found[step - 1] ?? '';
  const last = turns.findLast((each) => each.step <= step);
  return h('div', { class: `standing run-${i}` }, [
    h('p', [h('b', { class: 'name' }, name), ` ${percent(success[step - 1] ?? success[0] ?? 0)} of the episodes pass`]),
    h(
      'ul',
      pair.names.map(([former, now], at) =>
        h('li', { class: { found: marks[at] === '1' } }, marks[at] === '1' ? `${former} → ${now}` : `${former} → ?`),
      ),
    ),
    h(
      'p',
      { class: 'turn' },
      last && ['“', last.turn.read, '” ', h('code', last.turn.wrote), last.passed ? ' ✓' : ' ✗'],
    ),
  ]);
}

/** The panel that replays the pair. It begins by itself unless the visitor asks for less motion. */
const Replay = defineComponent({
  emits: ['live'],
  setup(_, { emit }) {
    const step = ref(1);
    const plays = ref(false);
    let frame = 0;
    let before = 0;
    const advance = (now: number) => {
      const passed = before === 0 ? 0 : (now - before) / 1000;
      before = now;
      step.value = Math.min(steps, step.value + (passed * steps) / SECONDS);
      if (step.value >= steps) plays.value = false;
      if (plays.value) frame = requestAnimationFrame(advance);
    };
    const play = () => {
      if (step.value >= steps) step.value = 1;
      before = 0;
      plays.value = true;
      frame = requestAnimationFrame(advance);
    };
    const pause = () => {
      plays.value = false;
      cancelAnimationFrame(frame);
    };
    onMounted(() => {
      if (matchMedia('(prefers-reduced-motion: reduce)').matches) step.value = steps;
      else play();
    });
    onBeforeUnmount(pause);
    const shown = computed(() => Math.floor(step.value));
    return () =>
      h('section', { class: 'replay', 'aria-label': 'A recorded pair of runs' }, [
        h('p', { class: 'head' }, [h('b', 'Two teams learn the same task'), ` step ${shown.value} of ${steps}`]),
        chart(shown.value),
        h(
          'div',
          { class: 'pair' },
          pair.runs.map((run, i) => standing(run, i, shown.value)),
        ),
        h('p', { class: 'buttons' }, [
          h(
            'button',
            { type: 'button', onClick: plays.value ? pause : play },
            plays.value ? 'pause' : step.value >= steps ? 'play again' : 'continue',
          ),
          h('button', { type: 'button', class: 'demo', onClick: () => emit('live') }, 'train both in this tab'),
        ]),
        h('p', { class: 'caption' }, [
          'A fixer gets the error message of a renamed command and has one try. GRPO compares the try with the whole team, ',
          'Dr. MAS with the fixer’s other tries. Recorded from ',
          h('code', pair.command),
          ', seed 1; toy models, a team made to show the effect.',
        ]),
      ]);
  },
});

const cards = [
  {
    title: 'I have agents',
    text: 'AI SDK, LangGraph, OpenAI Agents, Mastra, or any program that calls OpenAI’s or Anthropic’s API.',
    links: [
      ['One AI SDK program, to copy', '/ai-sdk'],
      ['A LangGraph graph, and other frameworks', '/agents-elsewhere#begin-with-your-file'],
      ['From traces of production', '/train-your-production-agent'],
    ],
  },
  {
    title: 'I write a team',
    text: 'Agents, tools and a reward in one TypeScript file. Train it on your processor in seconds.',
    links: [
      ['Install and quick start', '/getting-started'],
      ['Writing a team', '/writing-a-team'],
      ['When it does not learn', '/watching-runs#when-it-does-not-learn'],
    ],
  },
  {
    title: 'I do research',
    text: 'Estimators and losses of the field, runs that repeat, pairs of seeds with intervals.',
    links: [
      ['When does Dr. MAS help?', '/findings'],
      ['All estimators', '/estimators'],
      ['CreditBench, with known right credit', '/creditbench'],
    ],
  },
] as const;

const linkTo = (path: string) => withBase(path.replace(/(#|$)/, '.html$1'));

export const Home = defineComponent(() => {
  const isLive = ref(false);
  return () =>
    h('main', { class: 'home' }, [
      h('div', { class: 'hero' }, [
        h('div', { class: 'words' }, [
          h('h1', 'drmas'),
          h('p', { class: 'sentence' }, 'Train teams of LLM agents with reinforcement learning, in TypeScript.'),
          h(
            'p',
            'You have a program in which several agents work together, and you can score its result. drmas runs it many times on an open model and trains the model on the score.',
          ),
          h('pre', { tabindex: 0, 'aria-label': 'the first command' }, h('code', 'npm ci && npm start')),
          h(
            'p',
            { class: 'small' },
            'In a clone, with Node 20.20 or newer. To begin you need no Python, no GPU and no key.',
          ),
          h('p', { class: 'ways' }, [
            h('a', { class: 'main', href: linkTo('/getting-started') }, 'Quick start'),
            h('a', { href: linkTo('/about') }, 'What works today'),
            h('a', { href: linkTo('/questions') }, 'Questions'),
          ]),
        ]),
        h(Replay, { onLive: () => (isLive.value = true) }),
      ]),
      isLive.value &&
        h('iframe', { class: 'demo', src: withBase('/demo/index.html#start'), title: 'Two teams train in this tab' }),
      h(
        'div',
        { class: 'cards' },
        cards.map(({ title, text, links }) =>
          h('section', [
            h('h2', title),
            h('p', text),
            h(
              'ul',
              links.map(([words, path]) => h('li', h('a', { href: linkTo(path) }, words))),
            ),
          ]),
        ),
      ),
    ]);
});
