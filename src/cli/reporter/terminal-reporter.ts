import { existsSync } from 'node:fs';
import type { RunEvent, RunStarted, Spike, Step, Warmup } from '@drmas/engine/events';
import type { PlayProgress } from '@drmas/engine/host';
import { headlineOf } from '@drmas/engine/nouns';
import { commandText, nodeFiles } from '@drmas/engine/platform';
import { rivalOf } from '../../method/advantage.js';
import type { Recipe } from '../../method/recipe.js';
import { type RunDirectory, readEpisodes } from '../../method/store.js';
import { choosePair, pairLines } from './conversation-printer.js';
import {
  bestLine,
  emptyHistory,
  evaluationLine,
  failureLines,
  measureLines,
  playLine,
  remember,
  secondsLeft,
  spikeLine,
  stepLegend,
  stepLines,
  stepStays,
  stopText,
  warmupLine,
} from './progress-printer.js';
import { type Screen, StatusLines, tone } from './screen.js';
import { startLines } from './start-printer.js';
import { nextLines, secondsOf, summaryLines } from './summary-printer.js';
import { nearPath, wrap } from './text-layout.js';

type FinishedRun = Pick<RunDirectory, 'evaluationEpisodesPath'>;

/** Prints the progress of a run for a person, on a terminal or to a log file, from the run's events alone. */
export class TerminalReporter {
  readonly #screen: Screen;
  readonly #recipe: Recipe;
  /** The words that request the same recipe, without its seed. */
  readonly #request: readonly string[];
  readonly #seeded: boolean;
  readonly #runPath: string;
  readonly #history = emptyHistory();
  readonly #lines: StatusLines;
  #held: Step | undefined;
  readonly #warnings: string[] = [];
  #secondsOfRun = 0;
  /** The flags that the command to resume the run repeats. */
  readonly #flags: readonly string[];
  /** The seconds of the run before its interruption. */
  #secondsBefore = 0;

  /** @param options.seeded Whether the run's seed was typed; the commands to try next then name it */
  constructor(
    screen: Screen,
    recipe: Recipe,
    options: { request: readonly string[]; seeded?: boolean; runPath: string; flags?: readonly string[] },
  ) {
    this.#screen = screen;
    this.#lines = new StatusLines(screen);
    this.#recipe = recipe;
    this.#request = options.request;
    this.#seeded = options.seeded ?? false;
    this.#flags = options.flags ?? [];
    this.#runPath = nearPath(options.runPath);
  }

  /** Adds the events before an interruption to the history, and prints only the step after which the run resumes. */
  resume(events: readonly RunEvent[]): void {
    for (const event of events) remember(this.#history, event);
    this.#secondsBefore = secondsOf(this.#history);
    const { started, steps } = this.#history;
    if (started !== undefined) this.#start(started);
    this.#say(`resuming after step ${steps.at(-1)?.step ?? 0}`);
  }

  /** Prints a message that is not an event, such as that the warm start comes from the cache. */
  notify(message: string): void {
    this.#say(...wrap(message, this.#screen.width));
  }

  write(event: RunEvent): void {
    const ofHeldStep = event.type === 'spike' || event.type === 'skipped';
    if (!ofHeldStep) this.#sayHeldStep();
    remember(this.#history, event);
    const { width } = this.#screen;
    const { scores, started } = this.#history;
    switch (event.type) {
      case 'run.started':
        this.#start(event);
        break;
      case 'warmup': // a notice names a warm start from the cache
        if (this.#history.warmups.at(-1) === event) this.#lines.progress(this.#warmupLine(event), 'stays');
        break;
      case 'evaluation':
        this.#say(
          tone(this.#screen, 'bold', evaluationLine(event, width, headlineOf(scores, started?.success))),
          ...measureLines(event, width, scores),
        );
        if (event.step === 0) this.#say(...wrap(stepLegend(Object.keys(event.agents)), width));
        break;
      case 'step': // spikes of the step follow it at once, and its line marks them
        this.#held = event;
        queueMicrotask(() => this.#sayHeldStep());
        break;
      case 'spike':
      case 'skipped':
        if (this.#held === undefined) this.#say(this.#spikeLine(event));
        break;
      case 'warning':
        this.#warnings.push(event.message);
        this.#say(...wrap(`warning: ${event.message}`, width).map((line) => tone(this.#screen, 'yellow', line)));
        break;
      case 'run.finished':
        this.#secondsOfRun = this.#secondsBefore + event.seconds;
        this.#say(); // an error message may follow
        break;
      case 'episode.failed': // step lines and the final report count the others
        if (this.#history.failures[event.reason] === 1)
          this.#say(
            ...failureLines(
              event,
              width,
              this.#warnings.some((shown) => shown.includes(event.message)),
            ),
          );
        break;
      case 'best':
        if (event.step > 0) this.#say(bestLine(event));
        break;
      case 'stop':
        this.#say(...wrap(stopText(event), width).map((line) => tone(this.#screen, 'bold', line)));
        break;
      case 'checkpoint':
        break;
    }
  }

  /** Shows how many episodes of a step or an evaluation have ended. Only on a terminal, and not for every episode. */
  progress(progress: PlayProgress): void {
    const next = (this.#history.steps.at(-1)?.step ?? 0) + 1;
    if (progress.phase === 'training' && progress.step > next) return; // played ahead; shown at its own step
    this.#sayHeldStep();
    const { training } = this.#recipe;
    const step = this.#screen.live ? this.#history.steps.at(-1) : undefined;
    const before = step && { step, left: this.#secondsLeft() };
    this.#lines.passing(() => playLine(progress, training.steps, this.#screen.width, before));
  }

  /** Writes the report at the end of a run. @throws RunError when an episode file is damaged */
  async finish(run: FinishedRun): Promise<void> {
    const { width } = this.#screen;
    this.#say('', ...summaryLines(this.#history, this.#secondsOfRun, width), '');
    const pair = await this.#pair(run);
    if (pair !== undefined) this.#say(...pairLines(pair, width), '');
    this.#say(`the run is in ${this.#runPath}`);
    const { seed, advantage, lists } = this.#recipe;
    const best = this.#history.best !== undefined;
    const rival = rivalOf(advantage, lists.estimators);
    this.#say(...nextLines(this.#request, this.#runPath, { seed, seeded: this.#seeded, rival, best }));
  }

  interrupted(): void {
    const { started, warmups, steps, evaluations } = this.#history;
    if (started === undefined && steps.length === 0) {
      this.#say('', 'interrupted before the run began; downloads are kept: start the same command again');
      return;
    }
    this.#say('', `interrupted; resume with: ${this.#resumption()}`);
    if (warmups.length > 0 && steps.length === 0 && evaluations.length === 0)
      this.notify('The warm start had not ended. It starts again, because drmas stores only complete warm starts.');
  }

  failed(): void {
    const { checkpoint } = this.#history;
    if (checkpoint === undefined) return;
    const way = `failed; remove the cause, then resume from the checkpoint of step ${checkpoint} with:`;
    this.#say('', ...wrap(way, this.#screen.width), `  ${this.#resumption()}`, '');
  }

  #resumption(): string {
    return commandText(['npx', 'drmas', 'resume', this.#runPath, ...this.#flags]);
  }

  #start(event: RunStarted): void {
    this.#say(...startLines(this.#recipe, event, this.#runPath, this.#screen.width), '');
  }

  #warmupLine(event: Warmup): string {
    const ofPolicy = this.#history.warmups.filter(({ policy }) => policy === event.policy);
    return warmupLine(event, ofPolicy.at(-2)?.step ?? 0, this.#screen.width);
  }

  #sayHeldStep(): void {
    if (this.#held !== undefined) this.#say();
  }

  #secondsLeft(): number {
    const { training, evaluation } = this.#recipe;
    return secondsLeft(this.#history, training.steps, evaluation.every);
  }

  /** Writes the lines of a step, on a terminal in the place of the last step's line unless they are to stay. */
  #sayStep(event: Step): void {
    const { steps } = this.#recipe.training;
    const { live, width } = this.#screen;
    const spikes = this.#history.spikes.filter((spike) => spike.step === event.step);
    const spiking = new Set(spikes.map((spike) => spike.agent ?? spike.policy));
    const lines = stepLines(event, steps, spiking, this.#secondsLeft(), width);
    if (live && !stepStays(event, steps, spikes.length)) this.#lines.progress(lines[0] ?? '', 'goes');
    else this.#lines.say(...lines, ...spikes.map((spike) => this.#spikeLine(spike)));
  }

  #spikeLine(spike: Spike): string {
    return tone(this.#screen, 'yellow', spikeLine(spike, this.#screen.width));
  }

  async #pair(run: FinishedRun) {
    const [first, last] = [this.#history.evaluations[0], this.#history.evaluations.at(-1)];
    if (first === undefined || last === undefined || first === last) return undefined;
    const [before, after] = [run.evaluationEpisodesPath(first.step), run.evaluationEpisodesPath(last.step)];
    if (!existsSync(before) || !existsSync(after)) return undefined;
    return choosePair(await readEpisodes(nodeFiles, before), await readEpisodes(nodeFiles, after));
  }

  /** Writes permanent lines. A step line that was held back comes first. */
  #say(...lines: string[]): void {
    const step = this.#held;
    this.#held = undefined;
    if (step !== undefined) this.#sayStep(step);
    if (step === undefined || lines.length > 0) this.#lines.say(...lines);
  }
}
