import { declareTools, form, said, texts } from './declare.mjs';

const sampling = (text, maxTokens) => ({
  kind: 'sampling',
  params: { messages: [{ role: 'user', content: { type: 'text', text } }], maxTokens },
});
const roots = { kind: 'roots' };
const name = { name: { type: 'string' } };
const completed = (answer) =>
  said(`Elicitation completed: action=${answer.action}, content=${JSON.stringify(answer.content)}`);

/** Tools that ask the client, whichever way its revision is asked. */
export class QuestionTools {
  async test_sampling({ prompt }, call) {
    const { content } = await call.ask('completion', sampling(prompt, 100));
    return said(`LLM response: ${content.text}`);
  }

  async test_elicitation({ message }, call) {
    const answer = await call.ask(
      'details',
      form(message, {
        username: { type: 'string', description: "User's response" },
        email: { type: 'string', description: "User's email address" },
      }),
    );
    return said(`User response: action=${answer.action}, content=${JSON.stringify(answer.content)}`);
  }

  async test_elicitation_sep1034_defaults(_args, call) {
    const properties = {
      name: { type: 'string', default: 'John Doe' },
      age: { type: 'integer', default: 30 },
      score: { type: 'number', default: 95.5 },
      status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
      verified: { type: 'boolean', default: true },
    };
    return completed(await call.ask('defaults', form('Please review', properties, [])));
  }

  async test_elicitation_sep1330_enums(_args, call) {
    const titled = (values) => values.map(([value, title]) => ({ const: value, title }));
    const properties = {
      untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
      titledSingle: {
        type: 'string',
        oneOf: titled([
          ['value1', 'First Option'],
          ['value2', 'Second Option'],
          ['value3', 'Third Option'],
        ]),
      },
      legacyEnum: {
        type: 'string',
        enum: ['opt1', 'opt2', 'opt3'],
        enumNames: ['Option One', 'Option Two', 'Option Three'],
      },
      untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2', 'option3'] } },
      titledMulti: {
        type: 'array',
        items: {
          anyOf: titled([
            ['value1', 'First Choice'],
            ['value2', 'Second Choice'],
            ['value3', 'Third Choice'],
          ]),
        },
      },
    };
    return completed(await call.ask('choices', form('Please choose', properties, [])));
  }

  async test_missing_capability(_args, call) {
    await call.ask('completion', sampling('anything', 10));
    return said('asked');
  }

  async test_streaming_elicitation(_args, call) {
    await call.ask('text', form('A text', { text: { type: 'string' } }));
    return said('asked');
  }

  async test_input_required_result_elicitation(_args, call) {
    const answer = await call.ask('user_name', form('What is your name?', name));
    return said(`Hello, ${answer.content?.name}!`);
  }

  async test_input_required_result_sampling(_args, call) {
    const { content } = await call.ask('capital_question', sampling('What is the capital of France?', 100));
    return said(`LLM: ${content.text}`);
  }

  async test_input_required_result_list_roots(_args, call) {
    const answer = await call.ask('client_roots', roots);
    return said(`roots: ${JSON.stringify(answer.roots)}`);
  }

  async test_input_required_result_request_state(_args, call) {
    await call.ask('confirm', form('Please confirm', { ok: { type: 'boolean' } }));
    return said('state-ok');
  }

  async test_input_required_result_tampered_state(_args, call) {
    await call.ask('confirm', form('Please confirm', { ok: { type: 'boolean' } }));
    return said('state-ok');
  }

  async test_input_required_result_multiple_inputs(_args, call) {
    await Promise.all([
      call.ask('user_name', form('What is your name?', name)),
      call.ask('greeting', sampling('Generate a greeting', 50)),
      call.ask('client_roots', roots),
    ]);
    return said('all inputs received');
  }

  async test_input_required_result_multi_round(_args, call) {
    const first = await call.ask('step1', form('Step 1: What is your name?', name));
    const second = await call.ask(
      'step2',
      form('Step 2: What is your favorite color?', { color: { type: 'string' } }),
    );
    return said(`${first.content?.name} likes ${second.content?.color}`);
  }

  async test_input_required_result_capabilities(_args, call) {
    const questions = { completion: sampling('hi', 10), name: form('What is your name?', name) };
    await Promise.all(
      Object.entries(questions)
        .filter(([, question]) => call.canAsk(question))
        .map(([key, question]) => call.ask(key, question)),
    );
    return said('asked what could be asked');
  }
}

declareTools(QuestionTools, {
  test_sampling: { input: texts('prompt') },
  test_elicitation: { input: texts('message') },
  test_elicitation_sep1034_defaults: {},
  test_elicitation_sep1330_enums: {},
  test_missing_capability: {},
  test_streaming_elicitation: {},
  test_input_required_result_elicitation: {},
  test_input_required_result_sampling: {},
  test_input_required_result_list_roots: {},
  test_input_required_result_request_state: {},
  test_input_required_result_tampered_state: {},
  test_input_required_result_multiple_inputs: {},
  test_input_required_result_multi_round: {},
  test_input_required_result_capabilities: {},
});
