interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly onChange: (value: string) => void;
}

export function Choice({ label, value, options, onChange }: ChoiceProps) {
  return (
    <label>
      {label}
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

interface NumberFieldProps {
  /** The words in front of it, and behind it. */
  readonly label?: string;
  readonly unit?: string;
  readonly placeholder: string;
  readonly name: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** A field for a number; its content stays text until it is used. */
export function NumberField({ label, unit, placeholder, name, value, onChange }: NumberFieldProps) {
  return (
    <label>
      {label}
      <input
        class="bound"
        inputMode="decimal"
        placeholder={placeholder}
        aria-label={name}
        value={value}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
      {unit}
    </label>
  );
}

export const numberOr = (text: string) => (text.trim() === '' || !Number.isFinite(Number(text)) ? null : Number(text));
