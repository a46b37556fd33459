/** The paths that a suite checks, and the seconds that it takes with two quiet cores. */
export interface Suite {
  readonly paths: readonly string[];
  readonly seconds: number;
}
export declare const SUITES: Readonly<Record<string, Suite>>;
export declare const APART: Readonly<Record<string, string>>;

export interface Commit {
  readonly tree: string;
  /** Undefined if it is unknown. */
  readonly changed: readonly string[] | undefined;
  readonly slow: readonly string[];
  readonly all?: boolean;
}
export declare function choose(commit: Commit): {
  readonly suites: string[];
  readonly slow: string[];
  readonly skipped: (readonly [name: string, why: string])[];
};
