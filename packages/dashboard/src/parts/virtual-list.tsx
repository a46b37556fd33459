import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

/** Rows beyond the visible ones that are drawn too. */
const BEYOND = 6;

interface VirtualListProps {
  readonly count: number;
  readonly rowHeight: number;
  readonly chosen: number;
  readonly label: string;
  readonly onRange: (first: number, last: number) => void;
  readonly onChoose: (index: number) => void;
  readonly children: (index: number) => ComponentChildren;
}

/** A list of any length that renders only its visible rows. Arrow keys move the selection. */
export function VirtualList({ count, rowHeight, chosen, label, onRange, onChoose, children }: VirtualListProps) {
  const place = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const first = Math.max(0, Math.floor(view.top / rowHeight) - BEYOND);
  const last = Math.min(count - 1, Math.ceil((view.top + view.height) / rowHeight) + BEYOND);
  useEffect(() => onRange(first, last), [first, last, onRange]);
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const measure = () => setView({ top: element.scrollTop, height: element.clientHeight });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const element = place.current;
    if (element === null || chosen < 0) return;
    const top = chosen * rowHeight;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + rowHeight > element.scrollTop + element.clientHeight)
      element.scrollTop = top + rowHeight - element.clientHeight;
  }, [chosen, rowHeight]);
  const move = (event: KeyboardEvent) => {
    const by = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 10, PageUp: -10 }[event.key];
    if (by === undefined || count === 0) return;
    event.preventDefault();
    onChoose(Math.min(count - 1, Math.max(0, chosen + by)));
  };
  const rows = Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i);
  return (
    <div
      ref={place}
      class="virtual"
      role="listbox"
      aria-label={label}
      tabIndex={0}
      onKeyDown={move}
      onScroll={({ currentTarget }) => setView({ top: currentTarget.scrollTop, height: currentTarget.clientHeight })}
    >
      <div style={{ height: `${count * rowHeight}px` }}>
        {rows.map((index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the list itself hears the keys
          <div
            key={index}
            class="row"
            role="option"
            aria-selected={index === chosen}
            tabIndex={-1}
            style={{ top: `${index * rowHeight}px`, height: `${rowHeight}px` }}
            onClick={() => onChoose(index)}
          >
            {children(index)}
          </div>
        ))}
      </div>
    </div>
  );
}
