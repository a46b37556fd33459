/** A fault that a schema reports in a value; zod's issues have this shape. */
export interface Issue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** The issues on one line, each with its dotted path. */
export function issuesText(issues: readonly Issue[]): string {
  return issues.map(({ path, message }) => (path.length === 0 ? message : `${path.join('.')}: ${message}`)).join('; ');
}
