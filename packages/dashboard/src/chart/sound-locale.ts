/**
 * uPlot asks `Intl` for the language of the browser when it is loaded, and fails if `Intl` does not know the name, such
 * as `en-US@posix` of Chromium under LANG=C. So this module is imported before uPlot.
 */

/** Replaces a language that `Intl` refuses by `en`. */
export function useSoundLocale(navigator: { readonly language: string }): void {
  try {
    new Intl.NumberFormat(navigator.language);
  } catch {
    Object.defineProperty(navigator, 'language', { value: 'en', configurable: true });
  }
}

if (typeof navigator !== 'undefined') useSoundLocale(navigator);
