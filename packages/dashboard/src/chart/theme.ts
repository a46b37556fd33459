import { useEffect, useState } from 'preact/hooks';

/** Number of colours of the style, `--c0` to `--c7`. Colour-blind readers can distinguish them; dashes differ too. */
const COLOURS = 8;
const DASHES: readonly (readonly number[])[] = [[], [7, 3], [2, 3], [9, 3, 2, 3]];

export const colourClass = (index: number) => `c${index % COLOURS}`;
export const dashOf = (index: number): readonly number[] => DASHES[index % DASHES.length] ?? [];

/** The colours of the page's style as a canvas needs them. */
export interface Theme {
  readonly ink: string;
  readonly faint: string;
  readonly grid: string;
  readonly mark: string;
  readonly colours: readonly string[];
}

function currentTheme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(name).trim();
  return {
    ink: of('--ink'),
    faint: of('--faint'),
    grid: of('--grid'),
    mark: of('--mark'),
    colours: Array.from({ length: COLOURS }, (_, i) => of(`--c${i}`)),
  };
}

/** The theme, as the system's setting changes it. */
export function useTheme(): Theme {
  const [theme, setTheme] = useState(currentTheme);
  useEffect(() => {
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const change = () => setTheme(currentTheme());
    dark.addEventListener('change', change);
    return () => dark.removeEventListener('change', change);
  }, []);
  return theme;
}
