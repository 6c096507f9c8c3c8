// Stands in for the host: what the plugin imports of it, and what it registers with.
import { register } from "node:module";

const sdk = `
export const buildMemorySystemPromptAddition = ({ availableTools }) => globalThis.promptBuilder({ availableTools }).join("\\n");
export const delegateCompactionToRuntime = async (params) => ({ ok: true, compacted: true, reason: "by the host", params });
`;
const hooks = `
export const resolve = (name, context, next) => name === "openclaw/plugin-sdk/core"
  ? { url: ${JSON.stringify(`data:text/javascript,${encodeURIComponent(sdk)}`)}, shortCircuit: true } : next(name, context);
`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);
const { default: plugin } = await import("../index.js");

export function load(pluginConfig, context = {}) {
  const host = { warnings: [], errors: [], hooks: {} };
  plugin.register({
    pluginConfig,
    logger: { warn: (text) => host.warnings.push(text), error: (text) => host.errors.push(text) },
    registerContextEngine: (id, factory) => { host.engine = factory(context); host.id = id; },
    registerMemoryCapability: (capability) => { host.promptBuilder = globalThis.promptBuilder = capability.promptBuilder; },
    registerTool: (factory, options) => { host.tools = factory; host.toolNames = options.names; },
    on: (name, handler) => { host.hooks[name] = handler; },
  });
  return host;
}
