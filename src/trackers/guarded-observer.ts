import type { PlayObserver } from '../core/play/play-observer.js';

/** An observer of which nothing that it throws reaches the run: `onError` receives it. */
export function guardedObserver(observer: PlayObserver, onError: (error: unknown) => void): PlayObserver {
  const attempt = <T>(act: () => T): T | undefined => {
    try {
      return act();
    } catch (error) {
      onError(error);
      return undefined;
    }
  };
  return {
    round(round) {
      const watched = attempt(() => observer.round(round));
      return {
        begun(request) {
          const episode = attempt(() => watched?.begun?.(request));
          return (
            episode && {
              within(run) {
                let begun = false;
                const once = () => {
                  begun = true;
                  return run();
                };
                try {
                  return episode.within(once);
                } catch (error) {
                  if (begun) throw error; // the team's own
                  onError(error);
                  return run();
                }
              },
              answered: (turn, time) => attempt(() => episode.answered(turn, time)),
              ended: (played) => attempt(() => episode.ended(played)),
            }
          );
        },
        ended: (episode) => attempt(() => watched?.ended(episode)),
      };
    },
  };
}
