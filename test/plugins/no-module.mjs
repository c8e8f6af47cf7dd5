export default { tools: [] };
