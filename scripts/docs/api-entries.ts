/** The exports of the package's entry points as the page of the API shows them. */
import { join } from 'node:path';
import ts from 'typescript';
import { root } from './pages.js';

/** An export of an entry point. */
export interface Entry {
  readonly name: string;
  /** Tells declarations apart: an export that two entry points share has one key. */
  readonly key: string;
  readonly isType: boolean;
  readonly isError: boolean;
  /** The declaration without bodies and initial values. Empty for a type. */
  readonly declaration: string;
  /** The first paragraph of the doc comment, in one line. */
  readonly summary: string;
  readonly throws: readonly string[];
  /** The described parameters, with the shapes and units that their comments give. */
  readonly parameters: readonly { readonly name: string; readonly text: string }[];
  /** The description of the result; empty without one. */
  readonly returns: string;
  /** The examples of the doc comment, with their fences. */
  readonly examples: readonly string[];
  /** The documented settings of a type of options, each with the first sentence of its comment. */
  readonly members: readonly { readonly name: string; readonly summary: string }[];
}

/** Types whose members a user writes. Settings of recipes are in settings.md. */
const OPTIONS = /(Options|Definition|AgentSpec)$/;

/** The exports of each entry point, sorted by name. @throws Error naming a file that is no module */
export function entriesOf(files: Readonly<Record<string, string>>): { path: string; entries: Entry[] }[] {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const program = ts.createProgram(
    Object.values(files).map((file) => join(root, file)),
    { ...options, noEmit: true },
  );
  const checker = program.getTypeChecker();
  return Object.entries(files).map(([path, file]) => {
    const source = program.getSourceFile(join(root, file));
    const module = source && checker.getSymbolAtLocation(source);
    if (module === undefined) throw new Error(`${file} exports nothing`);
    const names = checker.getExportsOfModule(module).toSorted((a, b) => (a.name < b.name ? -1 : 1));
    return { path, entries: names.map((symbol) => entryOf(checker, symbol)) };
  });
}

function entryOf(checker: ts.TypeChecker, exported: ts.Symbol): Entry {
  const isAlias = (exported.flags & ts.SymbolFlags.Alias) !== 0;
  const symbol = isAlias ? checker.getAliasedSymbol(exported) : exported;
  const [first] = symbol.declarations ?? [];
  const tags = symbol.getJsDocTags(checker);
  const tagged = (name: string) =>
    tags.filter((tag) => tag.name === name).map(({ text }) => ts.displayPartsToString(text).trim());
  const isType = (symbol.flags & ts.SymbolFlags.Value) === 0;
  return {
    name: exported.name,
    key: `${first?.getSourceFile().fileName} ${first?.pos} ${exported.name}`,
    isType,
    isError: /(Error|Failure)$/.test(exported.name) && (symbol.flags & ts.SymbolFlags.Class) !== 0,
    declaration: isType ? '' : declarationOf(checker, symbol),
    summary: paragraphOf(ts.displayPartsToString(symbol.getDocumentationComment(checker))),
    throws: tagged('throws').map(oneLine),
    parameters: tagged('param').map((text) => {
      const [, name = '', words = ''] = /^(\S+)\s*(?:- )?([\s\S]*)$/.exec(text) ?? [];
      return { name, text: oneLine(words) };
    }),
    returns: tagged('returns').map(oneLine).join(' '),
    examples: tagged('example'),
    members: isType && OPTIONS.test(exported.name) ? membersOf(checker, symbol) : [],
  };
}

const oneLine = (text: string) => text.replaceAll(/\s+/g, ' ').trim();
const paragraphOf = (comment: string) => oneLine(comment.split(/\n\s*\n/)[0] ?? '');
const sentenceOf = (comment: string) =>
  /^.*?\.(?=\s|$)/.exec(paragraphOf(comment))?.[0] ?? paragraphOf(comment).replace(/:$/, '.');

function membersOf(checker: ts.TypeChecker, symbol: ts.Symbol): Entry['members'] {
  return checker
    .getDeclaredTypeOfSymbol(symbol)
    .getProperties()
    .map((property) => ({
      name: property.name,
      summary: sentenceOf(ts.displayPartsToString(property.getDocumentationComment(checker))),
    }))
    .filter(({ summary }) => summary !== '');
}

/** The source of the declarations without bodies: one line or more for each overload. */
function declarationOf(checker: ts.TypeChecker, symbol: ts.Symbol): string {
  const nodes = symbol.declarations ?? [];
  const functions = nodes.filter(ts.isFunctionDeclaration);
  const overloads = functions.filter(({ body }) => body === undefined);
  if (functions.length > 0) return (overloads.length > 0 ? overloads : functions).map(headOf).join('\n');
  const [node] = nodes;
  if (node !== undefined && ts.isClassDeclaration(node)) return classText(node);
  if (node === undefined) return symbol.name;
  const type = checker.typeToString(checker.getTypeOfSymbolAtLocation(symbol, node), node);
  return `const ${symbol.name}: ${type}`;
}

/** A function or method up to its body. */
function headOf(node: ts.FunctionDeclaration | ts.MethodDeclaration | ts.ConstructorDeclaration): string {
  const source = node.getSourceFile().text;
  const end = node.body === undefined ? node.getEnd() : node.body.getFullStart();
  return source
    .slice(node.getStart(), end)
    .replace(/^export (default )?/, '')
    .replaceAll(/\n? *\/\*\*[\s\S]*?\*\/ */g, '')
    .replace(/;?\s*$/, '');
}

/** A class with its public methods. */
function classText(node: ts.ClassDeclaration): string {
  const heritage = (node.heritageClauses ?? []).map((clause) => ` ${clause.getText()}`).join('');
  const types = node.typeParameters === undefined ? '' : `<${node.typeParameters.map((t) => t.getText()).join(', ')}>`;
  const methods = node.members.flatMap((member) => {
    const isMethod = ts.isMethodDeclaration(member) || ts.isConstructorDeclaration(member);
    const hidden = ts.getCombinedModifierFlags(member) & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected);
    if (!isMethod || hidden !== 0 || (member.name !== undefined && ts.isPrivateIdentifier(member.name))) return [];
    return [`  ${headOf(member).replaceAll('\n', '\n  ')};`];
  });
  const body = methods.length === 0 ? '{}' : `{\n${methods.join('\n')}\n}`;
  return `class ${node.name?.text ?? ''}${types}${heritage} ${body}`;
}
