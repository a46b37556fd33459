/** What a schema found wrong with a value; zod's issues are of this shape. */
export interface Issue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** The issues on one line, each with its dotted path. */
export function issuesText(issues: readonly Issue[]): string {
  return issues.map(({ path, message }) => (path.length === 0 ? message : `${path.join('.')}: ${message}`)).join('; ');
}
