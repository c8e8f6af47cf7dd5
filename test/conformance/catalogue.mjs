import { NEVER } from 'rxjs';
import { PromptRegistry, ResourceRegistry, ToolRegistry } from '@parley/server';
import { declareTools, PNG, said, textBlock } from './declare.mjs';

const STATIC = {
  'test://static-text': { mimeType: 'text/plain', text: 'This is the content of the static text resource.' },
  'test://static-binary': { mimeType: 'image/png', blob: PNG },
  'test://watched-resource': { mimeType: 'text/plain', text: 'watched' },
};
const TEMPLATE = /^test:\/\/template\/([^/]+)\/data$/;

const resources = {
  scheme: 'test',
  templates: [{ uriTemplate: 'test://template/{id}/data', name: 'template', mimeType: 'application/json' }],
  list: () =>
    Object.entries(STATIC).map(([uri, { mimeType }]) => ({
      uri,
      name: uri.slice('test://'.length),
      description: 'Conformance fixture.',
      mimeType,
    })),
  changes: (uri) => (Object.hasOwn(STATIC, uri) ? NEVER : undefined),
  read: (uri) => {
    if (Object.hasOwn(STATIC, uri)) return [{ uri, ...STATIC[uri] }];
    const id = TEMPLATE.exec(uri)?.[1];
    if (id === undefined) return undefined;
    const text = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` });
    return [{ uri, mimeType: 'application/json', text }];
  },
};

const user = (content) => ({ role: 'user', content });
const prompt = (name, messages, names = []) => ({
  name,
  description: `Conformance fixture ${name}.`,
  arguments: names.map((argument) => ({ name: argument, description: argument, required: true })),
  render: async (call) => ({ description: name, messages: await messages(call) }),
});

const prompts = [
  prompt('test_simple_prompt', () => [user(textBlock('This is a simple prompt for testing.'))]),
  prompt(
    'test_prompt_with_arguments',
    ({ args }) => [
      user(textBlock(`Prompt with arguments: arg1='${args.get('arg1')}', arg2='${args.get('arg2')}'`)),
    ],
    ['arg1', 'arg2'],
  ),
  prompt(
    'test_prompt_with_embedded_resource',
    ({ args }) => [
      user({
        type: 'resource',
        resource: {
          uri: args.get('resourceUri'),
          mimeType: 'text/plain',
          text: 'Embedded resource content for testing.',
        },
      }),
      user(textBlock('Please process the embedded resource above.')),
    ],
    ['resourceUri'],
  ),
  prompt('test_prompt_with_image', () => [
    user({ type: 'image', data: PNG, mimeType: 'image/png' }),
    user(textBlock('Please analyze the image above.')),
  ]),
  prompt('test_input_required_result_prompt', async ({ ask }) => {
    const schema = { type: 'object', properties: { context: { type: 'string' } }, required: ['context'] };
    await ask('user_context', { kind: 'form', message: 'Which context?', schema });
    return [user(textBlock('thanks'))];
  }),
];

/** Registers prompts and resources at boot, and changes the catalogue when a client asks for a change. */
export class Catalogue {
  static inject = [ToolRegistry, PromptRegistry, ResourceRegistry];

  constructor(tools, promptRegistry, resourceRegistry) {
    this.tools = tools;
    this.prompts = promptRegistry;
    for (const one of prompts) promptRegistry.register(one);
    resourceRegistry.register(resources);
  }

  test_trigger_tool_change() {
    const definition = { name: 'test_passing_tool', description: 'Comes and goes.' };
    this.tools.register({
      definition: {
        ...definition,
        category: 'custom',
        permission: 'readonly',
        timeout: 30,
        inputSchema: { type: 'object', properties: {} },
        clientSafe: false,
      },
      handler: () => 'passing',
    })();
    return said('changed');
  }

  test_trigger_prompt_change() {
    this.prompts.register(prompts[0]);
    return said('changed');
  }
}

declareTools(Catalogue, { test_trigger_tool_change: {}, test_trigger_prompt_change: {} });
