/** How far one value travels: the functions that are handed the whole recipe of a run. */
import { join } from 'node:path';
import ts from 'typescript';
import { isTest } from './imports.js';

/** The sections of a recipe. */
const SECTIONS = [
  ...['assign', 'policies', 'agents', 'advantage', 'loss', 'warmStart', 'training', 'evaluation', 'gateway'],
  ...['rollout', 'backend', 'sampler', 'lists'],
];
/** A value with this many sections is a recipe, whatever the name of its type. */
const MANY_SECTIONS = 3;

/**
 * The functions below `src` that a run's start reaches by calls and that take the whole recipe, as a parameter or as a
 * property `recipe` of one. A value is a recipe if its type is `Recipe` or is picked from it, or if it has three
 * sections of a recipe. Calls through an interface are not followed.
 * @param start the file and the name of the function that begins a run
 * @returns `path#name` of each, the first one included
 */
export function functionsWithRecipe(root: string, start: { readonly file: string; readonly name: string }): string[] {
  const config = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config.config, ts.sys, root);
  const program = ts.createProgram([join(root, start.file)], { ...options, noEmit: true });
  const checker = program.getTypeChecker();
  const nameOf = (node: ts.SignatureDeclaration) => {
    const path = node.getSourceFile().fileName.slice(root.length).replace(/^\//, '');
    const named = node.name ?? (ts.isVariableDeclaration(node.parent) ? node.parent.name : undefined);
    const holder = ts.isClassDeclaration(node.parent) ? `${node.parent.name?.text}.` : '';
    return `${path}#${holder}${named?.getText() ?? 'constructor'}`;
  };
  const isRecipe = (type: ts.Type) =>
    /^((Pick|Omit)<)?Recipe(Settings)?\b/.test(checker.typeToString(type)) ||
    SECTIONS.filter((section) => type.getProperty(section) !== undefined).length >= MANY_SECTIONS;
  const takesRecipe = (node: ts.SignatureDeclaration) =>
    node.parameters.some((parameter) => {
      const type = checker.getTypeAtLocation(parameter);
      if (isRecipe(type)) return true;
      const inner = type.getProperty('recipe');
      if (inner === undefined || !isRecipe(checker.getTypeOfSymbolAtLocation(inner, parameter))) return false;
      return mentionsRecipe(node);
    });
  const mentionsRecipe = (node: ts.Node): boolean =>
    (ts.isIdentifier(node) && node.text === 'recipe') || (ts.forEachChild(node, mentionsRecipe) ?? false);

  const seen = new Set<ts.SignatureDeclaration>();
  const visit = (node: ts.Node) => {
    if (ts.isCallExpression(node) || ts.isNewExpression(node)) {
      const called = checker.getResolvedSignature(node)?.declaration;
      if (called !== undefined && !ts.isJSDocSignature(called)) enter(called);
    }
    ts.forEachChild(node, visit);
  };
  const enter = (node: ts.SignatureDeclaration) => {
    const { fileName } = node.getSourceFile();
    if (seen.has(node) || !fileName.startsWith(join(root, 'src')) || isTest(fileName)) return;
    if (!('body' in node) || node.body === undefined) return;
    seen.add(node);
    visit(node.body as ts.Node);
  };
  const source = program.getSourceFile(join(root, start.file));
  const first = source?.statements.find(
    (node): node is ts.FunctionDeclaration => ts.isFunctionDeclaration(node) && node.name?.text === start.name,
  );
  if (first === undefined) throw new Error(`${start.file} has no function ${start.name}`);
  enter(first);
  return [...seen].filter(takesRecipe).map(nameOf).sort();
}
