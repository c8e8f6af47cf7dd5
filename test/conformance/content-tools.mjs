import { ToolContent } from '@parley/server';
import { setTimeout as pause } from 'node:timers/promises';
import { declareTools, PNG, said, textBlock, texts, WAV } from './declare.mjs';

/** @type {import('@parley/server').ContentBlock} */
const image = { type: 'image', data: PNG, mimeType: 'image/png' };

/** Tools that answer with each kind of content, report progress, log and fail. */
export class ContentTools {
  test_simple_text() {
    return said('This is a simple text response for testing.');
  }

  test_image_content() {
    return new ToolContent([image]);
  }

  test_audio_content() {
    return new ToolContent([{ type: 'audio', data: WAV, mimeType: 'audio/wav' }]);
  }

  test_embedded_resource() {
    const resource = {
      uri: 'test://embedded-resource',
      mimeType: 'text/plain',
      text: 'This is an embedded resource content.',
    };
    return new ToolContent([{ type: 'resource', resource }]);
  }

  test_multiple_content_types() {
    const resource = {
      uri: 'test://mixed-content-resource',
      mimeType: 'application/json',
      text: '{"test":"data","value":123}',
    };
    return new ToolContent([
      textBlock('Multiple content types test:'),
      image,
      { type: 'resource', resource },
    ]);
  }

  async test_tool_with_logging(_args, call) {
    for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
      call.log?.({ level: 'info', data });
      await pause(20);
    }
    return said('Tool with logging executed successfully');
  }

  test_logging_tool(_args, call) {
    call.log?.({ level: 'info', data: 'a line of log' });
    return said('logged');
  }

  async test_tool_with_progress(_args, call) {
    for (const progress of [0, 50, 100]) {
      call.progress({ progress, total: 100 });
      await pause(20);
    }
    return said('done');
  }

  test_error_handling() {
    throw new Error('This tool intentionally returns an error for testing');
  }

  async test_reconnection(_args, call) {
    await pause(30);
    call.endStream?.();
    await pause(150);
    return said('Reconnection test completed successfully');
  }

  json_schema_2020_12_tool() {
    return said('ok');
  }

  test_x_mcp_header({ region }) {
    return said(`region ${region}`);
  }
}

declareTools(ContentTools, {
  test_simple_text: {},
  test_image_content: {},
  test_audio_content: {},
  test_embedded_resource: {},
  test_multiple_content_types: {},
  test_tool_with_logging: {},
  test_logging_tool: {},
  test_tool_with_progress: {},
  test_error_handling: {},
  test_reconnection: {},
  json_schema_2020_12_tool: {
    input: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      $defs: {
        address: {
          $anchor: 'addressDef',
          type: 'object',
          properties: { street: { type: 'string' }, city: { type: 'string' } },
        },
      },
      properties: {
        name: { type: 'string' },
        address: { $ref: '#/$defs/address' },
        contactMethod: { type: 'string', enum: ['phone', 'email'] },
        phone: { type: 'string' },
        email: { type: 'string' },
      },
      allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
      if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
      // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
      then: { required: ['phone'] },
      else: { required: ['email'] },
      additionalProperties: false,
    },
  },
  test_x_mcp_header: {
    input: {
      ...texts('region'),
      properties: { region: { type: 'string', 'x-mcp-header': 'Region' } },
    },
  },
});
