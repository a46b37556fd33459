import type { RunEvent } from '@drmas/engine/events';
import type { PlayProgress } from '@drmas/engine/host';
import { isScored } from '@drmas/engine/nouns';
import type { RunSummary } from '../../../runs/analysis.js';
import type { AblationPlan, AblationResult, PlannedRun } from '../../../runs/studies.js';
import type { AblationView } from '../../report-ablation.js';
import { endedLine, successLines } from '../ablation-printer.js';
import { emptyHistory, type RunHistory, remember, secondsLeft, warmupLine } from '../progress-printer.js';
import { type Screen, StatusLines, tone } from '../screen.js';
import { labelled } from '../start-printer.js';
import { duration, fixed, nearPath, nextCommands, type Part, percent, shortened, wrap } from '../text-layout.js';
import { comparisonLines } from './comparison-printer.js';

type AblationRun = AblationPlan['runs'][number];

/**
 * Prints the progress of compared runs side by side: a row for each evaluation that all runs of a pair have, and below
 * it the progress of each run.
 */
export class ComparisonReporter implements AblationView {
  readonly #screen: Screen;
  readonly #lines: StatusLines;
  #runs: readonly AblationRun[] = [];
  readonly #going = new Map<string, RunHistory>();
  readonly #scores = new Map<string, Map<number, number>>();
  readonly #playing = new Map<string, PlayProgress>();
  readonly #shown = new Set<string>();
  readonly #warnings = new Set<string>();

  constructor(screen: Screen) {
    this.#screen = screen;
    this.#lines = new StatusLines(screen);
  }

  onStart({ runs, parallel, directory }: AblationPlan): void {
    this.#runs = runs;
    const [first] = runs;
    if (first === undefined) return;
    const { team, training, name, warmStart } = first.recipe;
    const seeds = [...new Set(runs.map(({ seed }) => seed))];
    const origin = warmStart === undefined ? '' : ' from the same warm start';
    const at = parallel > 1 ? `, ${parallel} runs at a time` : '';
    const rows = [
      ['recipe', `${name}, ${seeds.length > 1 ? 'seeds' : 'seed'} ${seeds.join(', ')}`],
      ['team', `${team.name}: ${Object.keys(team.agents).join(', ')}`],
      ['compares', `${this.#variants.join(' and ')}${origin}`],
      ['plan', `${training.steps} steps of ${training.tasksPerStep} tasks x ${training.groupSize} episodes${at}`],
      ['runs', nearPath(directory)],
    ];
    this.#lines.say(...labelled(rows, this.#screen.width), '');
  }

  onBegin({ name }: PlannedRun, before: readonly RunEvent[]): void {
    this.#going.set(name, before.reduce(remember, emptyHistory()));
    for (const event of before) this.#note(name, event);
  }

  onEvent({ name, variant }: PlannedRun, event: RunEvent): void {
    this.#going.set(name, remember(this.#going.get(name) ?? emptyHistory(), event));
    const { width } = this.#screen;
    if (event.type === 'warning') this.#warn(variant, event);
    const warmups = this.#going.get(name)?.warmups ?? [];
    if (event.type === 'warmup' && warmups.at(-1) === event && this.#warming) {
      const ofPolicy = warmups.filter(({ policy }) => policy === event.policy);
      this.#lines.progress(warmupLine(event, ofPolicy.at(-2)?.step ?? 0, width), 'goes');
    }
    this.#note(name, event);
    if (event.type === 'step') this.#lines.progress(this.#statusLine(), 'goes');
  }

  /** Shows how many episodes of a step have ended. Only on a terminal, and not for every episode. */
  onProgress({ name }: PlannedRun, progress: PlayProgress): void {
    this.#playing.set(name, progress);
    if (progress.phase === 'training') this.#lines.passing(() => this.#statusLine());
  }

  onEnd(run: RunSummary): void {
    this.#going.delete(run.name);
    if (run.status === 'failed') this.notify(endedLine(run));
    else for (const { step, score } of run.curve.evaluations) this.#score(run.name, step, score);
  }

  /** Prints a message that is not an event, such as that the warm start comes from the cache. */
  notify(message: string): void {
    this.#lines.say(...wrap(message, this.#screen.width));
  }

  finish(result: AblationResult, directory: string): void {
    const { width } = this.#screen;
    const saysSuccess = this.#runs[0]?.recipe.team.success !== undefined;
    const lines = [...comparisonLines(result, width), ...successLines(result, saysSuccess, width)];
    const next = nextCommands(['ablate', directory, '--seeds', '6'], ['report', directory]);
    this.#lines.say('', ...lines, '', ...next);
  }

  interrupted(next: string): void {
    this.#lines.say('', next);
  }

  /** Whether all runs are still at their warm start. Later runs replay the warm start of the first from the cache. */
  get #warming(): boolean {
    return this.#shown.size === 0 && [...this.#going.values()].every(({ steps }) => steps.length === 0);
  }

  get #variants(): string[] {
    return [...new Set(this.#runs.map(({ variant }) => variant))];
  }

  #warn(variant: string, { code, agent, message }: Extract<RunEvent, { type: 'warning' }>): void {
    const kind = [variant, code, agent].join(' ');
    if (this.#warnings.has(kind)) return;
    this.#warnings.add(kind);
    this.notify(`warning: ${variant}: ${message}`);
  }

  #note(name: string, event: RunEvent): void {
    if (event.type === 'evaluation' && isScored(event)) this.#score(name, event.step, event.averageAtK);
  }

  #score(name: string, step: number, score: number): void {
    const scores = this.#scores.get(name) ?? new Map<number, number>();
    this.#scores.set(name, scores.set(step, score));
    const seed = this.#runs.find((run) => run.name === name)?.seed;
    const pair = this.#runs.filter((run) => run.seed === seed);
    const row = pair.map((run) => this.#scores.get(run.name)?.get(step));
    const key = `${seed} ${step}`;
    if (this.#shown.has(key) || row.includes(undefined)) return;
    const several = new Set(this.#runs.map((run) => run.seed)).size > 1;
    const label = (text: string) => text.padEnd(several ? 18 : 10);
    const cells = (texts: readonly string[]) =>
      texts.map((text, i) => text.padStart(Math.max(7, this.#variants[i]?.length ?? 0))).join('  ');
    if (this.#shown.size === 0)
      this.#lines.say(tone(this.#screen, 'bold', `${label('held out')}${cells(this.#variants)}`));
    this.#shown.add(key);
    const at = several ? `pair ${seed}, step ${step}` : `step ${step}`;
    this.#lines.say(label(at) + cells(row.map((value) => percent(value ?? 0))));
  }

  /** The progress of each run that has not ended: `drmas 57/150 0.871  grpo 55/150 0.742  23 s left`. */
  #statusLine(): string {
    const going = this.#runs.flatMap((run) => {
      const history = this.#going.get(run.name);
      const playing = this.#playing.get(run.name);
      return history === undefined || (history.steps.length === 0 && playing === undefined)
        ? []
        : [{ ...run, history, playing, last: history.steps.at(-1) }];
    });
    const parts = going.map(({ variant, recipe: { training }, last, playing }): Part => {
      const { step = 0 } = last ?? {};
      const reward = last?.reward === undefined ? '' : ` reward ${fixed(last.reward.mean, 2)}`;
      const within =
        playing?.phase === 'training' && playing.step > step ? ` (${playing.done}/${playing.episodes})` : '';
      const text = `${variant} ${step}/${training.steps}${reward}`;
      return { text: text + within, brief: text, rank: 0 };
    });
    const left = going.map(({ history, recipe: { training, evaluation } }) =>
      secondsLeft(history, training.steps, evaluation.every),
    );
    return shortened([...parts, { text: `${duration(Math.max(0, ...left))} left`, rank: 1 }], this.#screen.width);
  }
}
