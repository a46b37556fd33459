import type { TaskOrigin } from '../task.js';

/** The first event of a run, after messages about its preparation. */
export interface RunStarted {
  readonly type: 'run.started';
  readonly recipe: string;
  readonly seed: number;
  readonly versions: { readonly drmas: string; readonly node: string };
  readonly hardware: {
    readonly cores: number;
    readonly kernels: string;
    readonly isa: string;
    /** Why slower kernels than wanted compute. Absent if the wanted ones do. */
    readonly notice?: string;
  };
  /** The measured facts about the server that holds the models. Absent if this process holds them. */
  readonly server?: Readonly<Record<string, unknown>>;
  /** The backend of each model, by its name, if the run has several backends; `hardware` is the first backend's. */
  readonly backends?: Readonly<
    Record<
      string,
      { readonly kernels: string; readonly isa: string; readonly server?: Readonly<Record<string, unknown>> }
    >
  >;
  /**
   * The data sets on hubs and the files that the tasks were read from, with digests. If a program defined the recipe,
   * also a digest of the first tasks of each other set. Absent if there are none.
   */
  readonly data?: readonly TaskOrigin[];
  /** Whether the team has a function `success`. Logs of earlier versions lack it. */
  readonly success?: boolean;
  /** The held-out tasks of an evaluation, of all benchmarks together. Logs of earlier versions lack it. */
  readonly evaluated?: number;
  /** The settings of each policy that may hold it where it is. Logs of earlier versions lack them. */
  readonly learning?: Readonly<
    Record<
      string,
      {
        readonly optimizer: string;
        readonly clipNorm: number;
        readonly entropyCoefficient: number;
        /** Absent if it is 0. */
        readonly weightDecay?: number;
        /** The agents that play with it. Logs of earlier versions lack them. */
        readonly agents?: readonly string[];
      }
    >
  >;
  /** The number of trainable parameters of each policy. */
  readonly parameters?: Readonly<Record<string, number>>;
}
